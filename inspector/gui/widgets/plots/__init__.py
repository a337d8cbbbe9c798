"""What every plot shares: axes, title, legend, wheel and dragging, the cursor, bands and pins over the steps."""
