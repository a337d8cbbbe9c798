"""Trainings of several processes: which part of a parameter each holds, and how what they measured is put together."""
