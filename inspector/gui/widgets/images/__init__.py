"""Cells of arrays as images: numbers to colours, what is in view, and marks over them."""
