"""What panels of attention share: maps, heads, parts and read-outs."""
