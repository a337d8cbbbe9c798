"""Reusable pictures and controls: they know nothing of runs, workers or files on disk.

In: arrays, labels, levels. Out: pictures with axes and a readout. Heat maps and strips paint only what is in view, at
the resolution of the screen, from a level of detail that `widgets/source.py` asks of the data.

Begin reading with `stepplot.py` and `heatmap.py`.
"""
