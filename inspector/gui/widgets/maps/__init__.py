"""Maps with their axes, colour bars and cursors: of states, and of attention."""
