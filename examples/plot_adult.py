"""
Adult
=====

t
"""

print(1)
