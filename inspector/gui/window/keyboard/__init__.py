"""The window by keyboard: which part has the focus, how it is seen, and how to go from part to part."""
