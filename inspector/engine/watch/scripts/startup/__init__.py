"""The folder that `inspector watch` puts first in PYTHONPATH; there is nothing else in it."""
