"""Small pictures, one file each, found by the registry in `gui/panel/pictures.py`."""
