"""Time, memory and start-up of maxmargin beside its peers: `python -m benchmarks`, or `make bench`."""
