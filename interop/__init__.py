"""How maxmargin fits where others are at home: their own tests, run on its classes."""
