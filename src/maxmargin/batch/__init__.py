"""BATCH ALGORITHMS: all patterns at every step; NumPy and BLAS."""
