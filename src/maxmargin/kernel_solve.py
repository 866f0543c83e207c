"""The outer loop for kernel problems."""
