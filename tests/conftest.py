"""What holds for every test: how hard Hypothesis tries, and that programs can be interrupted."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, Phase, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]
for name, examples in (("quick", 25), ("ci", 100), ("soak", 3_000)):
    settings.register_profile(
        name, max_examples=examples, deadline=None, suppress_health_check=QUIET, phases=PHASES
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell's background jobs ignore SIGINT, and so would every program that a test starts and ends.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
