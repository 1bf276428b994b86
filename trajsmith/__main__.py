"""`python -m trajsmith`: the command line without the console script."""

from trajsmith.cli.app import main

main()
