"""Tests of other packages that run on classes of maxmargin."""
