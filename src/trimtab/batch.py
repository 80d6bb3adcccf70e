"""``trimtab.batch``, the name under which users know ``trimtab_lab.batch``."""

from __future__ import annotations

import sys

import trimtab_lab.batch

sys.modules[__name__] = trimtab_lab.batch
