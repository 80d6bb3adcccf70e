"""Fits whole corpora: reads files of requests, writes files of fitted requests."""

from __future__ import annotations

from trimtab_lab.batch.job import Finished, run

__all__ = ["Finished", "run"]
