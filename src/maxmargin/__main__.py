"""python -m maxmargin: the command line."""

from .cli.app import main

main()
