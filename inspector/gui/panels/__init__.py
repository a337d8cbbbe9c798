"""The shelf of panels: one file each."""
