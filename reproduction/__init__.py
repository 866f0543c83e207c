"""Published tables beside computed numbers: `python -m reproduction`, or `make reproduce`."""
