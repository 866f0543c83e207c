"""Fits of rows in partitions: larger than memory, or on other machines."""
