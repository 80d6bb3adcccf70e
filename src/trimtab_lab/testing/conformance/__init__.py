"""The conformance suite tests, as a black box, what a tool that shortens conversations must keep.

It knows stories, the providers' formats and the rule table, and nothing of how trimtab plans.
"""

from __future__ import annotations

from trimtab_lab.testing.conformance.opening import open_target
from trimtab_lab.testing.conformance.properties import NAMES, PROPERTIES, Property
from trimtab_lab.testing.conformance.scoreboard import Failure, Row, Scoreboard
from trimtab_lab.testing.conformance.suite import Options, run
from trimtab_lab.testing.conformance.targets import Sent, Target, TargetConversation, TargetOptions

__all__ = [
    "NAMES",
    "PROPERTIES",
    "Failure",
    "Options",
    "Property",
    "Row",
    "Scoreboard",
    "Sent",
    "Target",
    "TargetConversation",
    "TargetOptions",
    "open_target",
    "run",
]
