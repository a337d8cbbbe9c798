"""Reusable pictures: they know nothing of runs, channels or captures."""
