"""The registry of panels: one file each."""
