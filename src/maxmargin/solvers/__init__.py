"""The batch solvers, each a generator of points (w, b, alpha) that converge to an optimum, and their linear algebra."""
