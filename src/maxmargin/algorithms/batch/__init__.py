"""BATCH ALGORITHMS: all patterns at every step; NumPy and BLAS, the Perceptrons on any array library."""
