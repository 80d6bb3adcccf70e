"""Fits whole corpora: reads files of requests, writes files of fitted requests.

Knows files, shards and processes; one record is ``trimtab.fit``.
"""

from __future__ import annotations

from trimtab.batch.job import Finished, run

__all__ = ["Finished", "run"]
