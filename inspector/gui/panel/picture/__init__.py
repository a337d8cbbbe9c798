"""Parts of the panel of words on a picture: which maps there are, and the table of small pictures that they make."""
