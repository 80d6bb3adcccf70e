"""Made-up agent histories in every state a client can bring them: legal, broken, odd, large.

``legal()`` and ``broken()`` draw (request, format); ``of()`` draws (request, model) of one format.
The story, what harms it and how each format spells it are the soak's: a seed stands for one
history, and Hypothesis draws the seed.  Knows the judges; of the library only which faults it
has to know before a refusal.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, NamedTuple

import doubtful
import judge
import judge_bedrock
import judge_gemini
import judge_interactions
import judge_responses
import wounds
from hypothesis import strategies as st
from soak.mutations import MUTATIONS, NAMES
from soak.story import Draw, Frame, frame, story
from soak.writers_more import WRITERS

FORMATS = ("openai-chat", "anthropic")
_JUDGES = {
    "openai-responses": judge_responses.problems,
    "bedrock": judge_bedrock.problems,
    "gemini": judge_gemini.problems,
    "gemini-interactions": judge_interactions.problems,
}
SPOKEN = tuple(name for name in NAMES if name not in ("role-changed", "merged"))
"""Those that leave each text with who said it: the laws ask for that."""
SEEDS = st.integers(0, 2**32 - 1)


class History(NamedTuple):
    """A request and the model it is for, where the request may not say so."""

    request: Any
    format: str
    model: str | None

    @property
    def is_legal(self) -> bool:
        """Whether the provider accepts it, by the judge of its format."""
        if other := _JUDGES.get(self.format):
            return other(self.request, self.model) == []
        return judge.problems(self.request, self.format) == []


def _client(draw: Draw, format: str) -> Frame:
    """A client; none of DeepSeek's, which takes ids that the judge of chat does not."""
    found = frame(draw, format)
    return replace(found, model=None) if found.model == "deepseek-chat" else found


def whole(seed: object, format: str) -> History:
    """The history of a seed as an agent's client would write it: nearly always legal."""
    draw = Draw(random.Random(str(seed)))
    around = _client(draw, format)
    request = WRITERS[format](story(draw, around, format), around)
    wounds.refer_to_tools(request)
    for _ in range(draw.pick((0, 1, 2, 3))):
        wounds.habit(draw.rng, request, format)
    return History(request, format, around.model)


def harmed(seed: object, format: str) -> History:
    """The history of a seed that came to some harm, in the story or as written."""
    draw = Draw(random.Random(str(seed)))
    around = _client(draw, format)
    told = story(draw, around, format)
    for _ in range(draw.pick((0, 0, 1, 2, 3))):
        MUTATIONS[draw.pick(SPOKEN)](draw, told)
    request = WRITERS[format](told, around)
    wounds.refer_to_tools(request)
    for _ in range(draw.pick((0, 0, 1, 2))):
        wounds.habit(draw.rng, request, format)
    for _ in range(draw.pick((0, 1, 2, 3))):
        wounds.hurt(draw.rng, request, format)
    return History(request, format, around.model)


def accepted(seed: int, format: str) -> History:
    """The first legal one of some histories of a seed."""
    return next(found for n in range(99) if (found := whole((seed, n), format)).is_legal)


def repairable(seed: int, format: str) -> History:
    """The first harmed one of a seed whose faults are certain: none waits for a refusal."""
    return next(found for n in range(99) if not waits(found := harmed((seed, n), format)))


def waits(found: History) -> bool:
    """Whether a request breaks a rule that is repaired only after a refusal."""
    broken = doubtful.found(found.request, found.format, found.model)
    return not all(violation.certain for violation in broken)


def _pair(found: History) -> tuple[Any, str]:
    return found.request, found.format


def _modelled(found: History) -> tuple[Any, str | None]:
    return found.request, found.model


def legal(formats: tuple[str, ...] = FORMATS) -> st.SearchStrategy[tuple[Any, str]]:
    """Requests that the provider accepts."""
    return st.builds(accepted, SEEDS, st.sampled_from(formats)).map(_pair)


def broken(formats: tuple[str, ...] = FORMATS) -> st.SearchStrategy[tuple[Any, str]]:
    """Harmed histories; a few of them happen to be legal all the same."""
    return st.builds(repairable, SEEDS, st.sampled_from(formats)).map(_pair)


def histories(formats: tuple[str, ...] = FORMATS) -> st.SearchStrategy[tuple[Any, str]]:
    """Legal and broken ones, half and half."""
    return st.one_of(legal(formats), broken(formats))


def of(format: str, kind: str = "all") -> st.SearchStrategy[tuple[Any, str | None]]:
    """(request, model) of one format.

    ``kind``: legal | broken | all of both | harmed, which may break what only a refusal tells."""
    good = st.builds(accepted, SEEDS, st.just(format)).map(_modelled)
    bad = st.builds(repairable, SEEDS, st.just(format)).map(_modelled)
    ill = st.builds(harmed, SEEDS, st.just(format)).map(_modelled)
    kinds = {"legal": good, "broken": bad, "all": st.one_of(good, bad), "harmed": ill}
    return kinds[kind]
