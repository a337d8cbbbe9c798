"""A training in the window: its timeline, spikes, sweeps and controls."""
