"""Quantities of gates and units: how open, how often, for how long, and at which inputs."""
