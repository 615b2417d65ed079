"""`python -m dpredact`."""

from dpredact.cli.main import main

if __name__ == "__main__":
    main()
