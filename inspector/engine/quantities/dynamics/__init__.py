"""Quantities of a recurrence as a dynamical system: exponents, fixed points, trajectories, spectra of weights."""
