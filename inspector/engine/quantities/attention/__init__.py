"""Quantities of attention: maps of every head, and one number for each of their rows."""
