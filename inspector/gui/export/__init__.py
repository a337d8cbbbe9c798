"""Figures and numbers of panels as files, with and without a window.

figure_files   a panel's figure as PNG, SVG or PDF with vector text; its numbers as CSV or NPZ
headless       the same from the command line, on machines without a display
panels_of      which panels have something to show, and which shows a channel best
inline, drawn  panels as pieces of an HTML page
offscreen      lays out a panel at a size without showing it
"""
