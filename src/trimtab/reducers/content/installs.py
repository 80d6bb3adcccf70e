"""Package installs by pip, npm, apt, cargo and the like: packages and versions installed first."""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence

from trimtab.reducers.content.base import MUST, SUMMARY

_OUTCOME = re.compile(
    r"Successfully (?:installed|built|uninstalled)|(?:added|removed|changed|up to date|audited)\b"
    r".*\d|\d+ (?:upgraded|packages? )|\d+ newly installed|Need to get |After this operation"
    r"|Fetched \d|Resolved \d+ packages|Prepared \d+|Installed \d+|\s*Locking \d+"
    r"|\s*Finished (?:`|dev|release)|\s*Downloaded \d+ crates"
)
_PUT = re.compile(
    r"\s*(?:Setting up|Installing|Compiling|Installed|Upgrading|Adding|Locking|Inst) \S+.*\d"
    r"|\s*\+ \S+@\d|\s*[+~-] \S+(?:@|==)\d|Collecting \S"
)
_ON_THE_WAY = re.compile(
    r"Conf |Get:\d+ |Hit:\d+ |Preparing to unpack|Unpacking |Selecting previously|\s*Downloading |"
    r"\s*Downloaded |\s*Using cached|Requirement already|\(Reading database|Processing triggers"
    r"|\s*Checking |\s*Fresh |npm (?:http|verb|sill)|\s*Created wheel|\s*Stored in|\s*Getting "
    r"|\s*Preparing |\s*Building |\s*Obtaining |Reading |Building "
)
_WORDS = ("nst", "Compiling ", "Collecting ", "added ", "Setting up ", "Get:", "upgraded",
          "ockin", "audited", "up to date", "Downloaded ", "Resolved ", "==",
          "Finished ")  # fmt: skip
_PLACED, _PASSED = 7.0, 0.3


def looks(line: str) -> bool:
    """Whether this line reports a package being fetched or installed."""
    return bool(_PUT.match(line) or _ON_THE_WAY.match(line))


def weigh(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    """Raise the weights of what was installed, lower those of downloads; in place."""
    whole = "\n".join(lines)
    if not any(word in whole for word in _WORDS):
        return
    for number, line in enumerate(lines):
        if _OUTCOME.match(line):
            must = line[:1].isupper() or line[:1].isdigit() or line[:5] in ("added", "up to")
            weights[number] = max(weights[number], SUMMARY if must else MUST)
        elif _PUT.match(line):
            weights[number] += _PLACED
        elif _ON_THE_WAY.match(line):
            weights[number] *= _PASSED
