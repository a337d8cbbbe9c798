"""Reusable plot items and controls, independent of runs, workers and files on disk.

In: arrays, labels, levels. Out: plot items with axes and a readout. Heat maps and strips paint only what is in view, at
the resolution of the screen, from a level of detail that `widgets/plots/source.py` requests from the data.

Begin reading with `stepplot.py` and `heatmap.py`.
"""
