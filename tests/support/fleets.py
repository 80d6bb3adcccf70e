"""Made-up fleets of conversations in two arms, of which a known share was saved."""

from __future__ import annotations

import math
import random

from trimtab.pricing.arms import ArmUnit
from trimtab.sessions.control import is_control

TRUE = 0.25
"""The share of the prompts' cost that is saved."""


def fleet(
    seed: int, conversations: int = 400, share: float = 0.1
) -> tuple[list[ArmUnit], list[ArmUnit]]:
    """Conversations of very different lengths and prices, drawn into (treated, control) as the
    proxy does it; ``share``: of the control arm."""
    rng = random.Random(seed)
    treated, control = list[ArmUnit](), list[ArmUnit]()
    for number in range(conversations):
        arrived = int(math.exp(rng.gauss(12, 1.2)))
        price = 3e-7 * math.exp(rng.gauss(0, 0.4)) * (1 + 30_000 / (arrived + 30_000))
        effect = (1 - TRUE) * math.exp(rng.gauss(0, 0.3) - 0.045)
        left_alone = is_control(f"{seed}/{number}", share)
        unit = ArmUnit(arrived * price * (1.0 if left_alone else effect), arrived)
        (control if left_alone else treated).append(unit)
    return treated, control
