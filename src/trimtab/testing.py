"""``trimtab.testing``, the name under which users know ``trimtab_lab.testing``."""

from __future__ import annotations

import sys

import trimtab_lab.testing
from trimtab_lab.testing import *  # noqa: F403 - for type checkers

if __name__ == "__main__":
    from trimtab_lab.testing.__main__ import main

    sys.exit(main())

sys.modules[__name__] = trimtab_lab.testing
