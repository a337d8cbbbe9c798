"""The registry of panels: one file for each panel. A panel accepts channels by kind and axes, never by name."""
