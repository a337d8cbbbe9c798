"""Quantities of attention: maps of every head, and one number a row of them."""
