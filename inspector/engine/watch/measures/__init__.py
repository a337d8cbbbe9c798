"""What a preset may measure at a recorded iteration: one file a group of series."""
