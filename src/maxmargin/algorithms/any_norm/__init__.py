"""Batch solvers for every norm: interior points, the barrier method and Newton's method on smoothed losses."""
