"""The rows above and below the panels: input, run, frames, the strip of the sequence, and what is damaged."""
