"""The registry of panels: one file each. A panel accepts channels by kind and axes, never by name."""
