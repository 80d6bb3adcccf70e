"""The recall tool, answered between a client and its provider, over several rounds that the client
sees as one answer.

``recall_rounds`` has the order of a round; ``offered_tools`` the tools and their results;
``hidden_exchanges`` what the client did not see, put back into its later requests; each
format's own rewriter (``formats/engine/rewriter.py``) makes one answer of several.
"""

from __future__ import annotations

from trimtab.rounds.hidden_exchanges import ExchangeMemory
from trimtab.rounds.recall_rounds import RecallRounds, rewritable
from trimtab.rounds.stored_exchanges import StoredExchanges, exchanges_of

__all__ = [
    "ExchangeMemory",
    "RecallRounds",
    "StoredExchanges",
    "exchanges_of",
    "rewritable",
]
