"""Tests of other packages, run on maxmargin's classes."""
