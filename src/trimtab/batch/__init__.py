"""Fits whole corpora: files of requests in, files of requests that fit out.

Knows files, shards and processes; one record is ``trimtab.fit``.
"""

from __future__ import annotations

from trimtab.batch.job import Finished, run

__all__ = ["Finished", "run"]
