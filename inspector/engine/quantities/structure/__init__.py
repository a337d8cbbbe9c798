"""Tests of a model's structure, which need no training and no threshold but rounding."""
