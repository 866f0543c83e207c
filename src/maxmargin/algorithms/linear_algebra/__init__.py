"""Linear systems and centred rows that batch solvers share."""
