"""Incremental rules in kernel space: one binary problem under way."""
