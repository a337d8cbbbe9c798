"""What a hidden variable is used for: the subject called again with another z, and what its numbers tell of it."""
