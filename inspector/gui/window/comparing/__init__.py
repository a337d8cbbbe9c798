"""Two captures, models or frames compared in the window."""
