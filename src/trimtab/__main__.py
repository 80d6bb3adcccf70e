"""``python -m trimtab`` runs the command line, also where the script is not on PATH."""

import sys

from trimtab.cli import main

sys.exit(main())
