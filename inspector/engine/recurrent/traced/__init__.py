"""A user's own recurrence, seen through the operations that it makes: recording, loops, names, and steps to replay."""
