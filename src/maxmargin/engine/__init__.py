"""The compiled engine: bare arrays and numbers; imports NumPy and itself only."""
