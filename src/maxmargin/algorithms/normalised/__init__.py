"""The algorithms on normalised patterns: the normalised and the smoothed Perceptron, von Neumann, primal-dual."""
