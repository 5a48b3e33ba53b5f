"""`python -m p2pdp` is the command `p2pdp`."""

import sys

from p2pdp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
