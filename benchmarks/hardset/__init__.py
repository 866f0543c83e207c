"""A public set of 100 hard problems of maximum-margin classification, each with its optimum bracketed to 1e-12."""
