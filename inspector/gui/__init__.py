"""The window: the only room with Qt, and never torch."""
