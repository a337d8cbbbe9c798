"""The doctor: reads a capture and writes findings (numpy only, never torch)."""
