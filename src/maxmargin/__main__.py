"""python -m maxmargin: the command line."""

from .cli import main

main()
