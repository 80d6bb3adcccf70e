"""What holds for every test: how hard Hypothesis tries, which files begin, which tests are slow."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]
for name, examples in (("quick", 10), ("ci", 30), ("nightly", 200), ("long", 3_000)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        suppress_health_check=QUIET,
        phases=PHASES,
        derandomize=name in ("quick", "ci"),  # a failure is the same wherever it is run again
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Without bytecode each worker, and each program that a test starts, compiles everything anew.
# Where it must not stand beside the sources it is kept in pytest's own folder.
if sys.dont_write_bytecode:
    bytecode = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(bytecode)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(bytecode)

# A shell's background jobs ignore SIGINT, and so would every program that a test starts and ends.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Servers within a test run on asyncio, as with most users; on uvloop where a test asks for it.
# Programs that a test starts find it.
sys.modules.setdefault("uvloop", None)  # type: ignore[arg-type]

ONE_CERTIFICATE = Path(__file__).parent / "support" / "data_files" / "one_certificate.pem"

SLOW_SECONDS = 20.0
"""A test that takes longer is named at the end of a run: one file is one worker's."""


def pytest_configure(config: pytest.Config) -> None:
    """Files are dealt out in their own order, the many small ones of ``unit`` last: by the number
    of tests, as xdist would, the dearest came last, and one worker was left with them."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_finish(session: pytest.Session) -> None:
    """Modules and collected tests stay: a full collection need not look through them.

    Only the tier ``world`` asks anybody over TLS; each client of the others reads one certificate
    instead of a hundred, which takes 20 ms a client.
    """
    gc.freeze()
    gc.set_threshold(20_000)  # what a test makes is gone with it: to look for it costs more
    if not any(item.get_closest_marker("world") for item in session.items):
        os.environ.setdefault("SSL_CERT_FILE", str(ONE_CERTIFICATE))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that took long, whether they passed or not."""
    seconds = Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid] += report.duration
    if slow := [(name, s) for name, s in seconds.most_common() if s > SLOW_SECONDS]:
        terminalreporter.section(f"more than {SLOW_SECONDS:g} seconds: make these cheaper")
        for name, took in slow:
            terminalreporter.write_line(f"{took:6.1f} s  {name}")
