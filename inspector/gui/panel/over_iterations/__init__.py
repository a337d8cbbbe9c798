"""What panels share that show a training: curves, tables as maps, and one number a frame."""
