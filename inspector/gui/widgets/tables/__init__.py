"""Tables and columns of text, on screen and in figures."""
