"""Published tables beside our own numbers: `python -m reproduction`, or `make reproduce`."""
