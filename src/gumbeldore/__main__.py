"""`python -m gumbeldore`: the command line, for where its script is not on the path."""

import sys

from gumbeldore.start import main

if __name__ == "__main__":
    sys.exit(main())
