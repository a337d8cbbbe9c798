"""Plots of lines, bars and points."""
