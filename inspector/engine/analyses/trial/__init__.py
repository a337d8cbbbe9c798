"""Trainings on copies, and what is measured before a training begins."""
