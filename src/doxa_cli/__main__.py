"""`python -m doxa_cli` is `doxa`."""

import sys

from doxa_cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
