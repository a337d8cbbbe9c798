"""Docks and their tabs: where they are, what they are called, how wide the sides are, and layouts of them."""
