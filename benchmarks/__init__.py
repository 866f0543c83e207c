"""Benchmarks of time, memory and start-up, maxmargin and its peers: `python -m benchmarks`, or `make bench`."""
