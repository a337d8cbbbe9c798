"""Two captures, frames or files beside each other."""
