"""Published tables, and our numbers beside them: `python -m reproduction`, or `make reproduce`."""
