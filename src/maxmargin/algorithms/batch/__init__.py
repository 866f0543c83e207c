"""Batch algorithms: solvers that use all rows at every step."""
