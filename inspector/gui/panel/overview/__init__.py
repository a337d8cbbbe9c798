"""The overview of a capture: what was run, findings, small pictures and notes."""
