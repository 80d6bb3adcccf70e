"""What to send for one request: the library's answer, and never less than what came.

Knows the library.  An error of ours never breaks a request: then what came is sent.  Does not
know HTTP.
"""

from __future__ import annotations

import time
from typing import Any

from trimtab.errors import CannotFit, InvalidRequest, InvalidSetting
from trimtab.proxy import logs
from trimtab.proxy.account import Account
from trimtab.proxy.asgi import Header
from trimtab.proxy.attempt import Sent
from trimtab.proxy.exchange import aside
from trimtab.session import Session
from trimtab.settings import NO_WINDOW


class Fitting:
    """Fits one request through a session of the library."""

    def __init__(
        self, session: Session, account: Account, *, format: str, model: str | None
    ) -> None:
        self._session, self._account = session, account
        self._format, self._model = format, model
        self._report: Any = None

    async def first(self, original: bytes) -> bytes | None:
        """The body to send."""
        began = time.perf_counter()
        try:
            fitted = await aside(original, lambda: self._fit(original))
        except (InvalidRequest, CannotFit) as error:
            self._account.note = type(error).__name__
            return None
        except Exception as error:
            logs.fault("fit", error)
            self._account.note = "fault"
            return None
        self._report = fitted.report
        took = (time.perf_counter() - began) * 1000
        self._account.fitted(fitted.report, took, self._model or "")
        return None if fitted.request is original else fitted.request

    def _fit(self, body: bytes) -> Any:
        keywords: dict[str, Any] = {"format": self._format}
        if self._model:
            keywords["model"] = self._model
        try:
            return self._session.fit(body, **keywords)
        except InvalidSetting:  # a model that nobody knows: only refusals tell its window
            return self._session.fit(body, window=NO_WINDOW, **keywords)

    async def refused(self, sent: Sent) -> bytes | None:
        """Nothing else to send, so far."""
        self._account.refused(sent.status, "other")
        return None

    def told(self) -> list[Header]:
        """One header that sums up."""
        if self._report is None:
            return []
        report = self._report
        saved = report.tokens_before - report.tokens_after
        text = f"saved={saved}; edits={len(report.edits)}; sends=1"
        return [(b"x-trimtab", text.encode())]
