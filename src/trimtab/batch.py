"""``trimtab.batch``, the name under which users know ``trimtab_lab.batch``."""

from __future__ import annotations

import sys

import trimtab_lab.batch
from trimtab_lab.batch import *  # noqa: F403 - for type checkers

sys.modules[__name__] = trimtab_lab.batch
