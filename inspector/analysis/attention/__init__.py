"""What maps of attention are drawn from: rows, levels of detail, numbers of heads, alignments, strongest weights."""
