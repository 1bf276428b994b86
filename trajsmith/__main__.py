"""`python -m trajsmith`: the command line without the console script."""

from trajsmith.cli import main

main()
