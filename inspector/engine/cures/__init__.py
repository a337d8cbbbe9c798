"""What may make a training go better without a change of the model's code: one file each, tried on copies."""
