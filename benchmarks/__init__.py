"""Benchmarks of time, memory and start-up of maxmargin and its peers: `python -m benchmarks`, or `make bench`."""
