"""``python -m trimtab``: the command line where its script is not on the path."""

import sys

from trimtab.cli import main

sys.exit(main())
