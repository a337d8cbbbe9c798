"""The process that the window runs in: display, garbage collection, exception hooks. Nothing here depends on the
window."""
