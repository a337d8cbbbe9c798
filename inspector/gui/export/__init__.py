"""Figures and numbers of panels as files, with and without a window.

figure_files   a panel's figure as PNG, SVG or PDF with vector text; its numbers as CSV or NPZ
headless       the same from the command line, on machines without a display
offscreen      lays out a panel at a size without showing it
"""
