"""The first page of the window: what can be opened, what was open, samples. `page` draws it, `welcome` does what it
asks for, `looked_up` reads small facts beside the window."""
