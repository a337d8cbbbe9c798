"""What a step of training would do: the model is tried with other parameters, and is afterwards what it was."""
