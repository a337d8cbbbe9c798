"""Parts of the panel of inputs, one file for each way of drawing: tokens, pictures, series with marks, and sound."""
