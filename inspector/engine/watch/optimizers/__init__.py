"""The optimizers of a watched training: given by the user, or made by its loop; and their settings."""
