"""`python -m lipcert` runs the command line."""

from lipcert.cli import main

if __name__ == "__main__":
    main()
