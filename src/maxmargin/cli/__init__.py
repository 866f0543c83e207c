"""The command line: every option of a fit is a parameter of the estimator."""
