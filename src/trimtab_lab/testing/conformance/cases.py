"""The cases: hard ones, each with a number and a name, and random ones, each made from a seed.

A case is reproduced by its number and the window.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from trimtab_lab.testing.conformance.stories import DEFERRED, Story, StoryCall, StoryTurn, Teller
from trimtab_lab.testing.conformance.writing import FORMATS

FIRST_DRAWN = 100
"""Seeds from here on give random cases; those below are the hard cases."""

MAX_TURNS = 14


@dataclass(frozen=True, slots=True)
class Case:
    """One case at one window.

    ``grows``: the client sends the conversation at each turn as it grows; else only once, whole.
    ``is_even``: no single text is large, so that a batch can leave room.  ``formats``: those that
    know what is in it.
    """

    seed: int
    name: str
    story: Story
    grows: bool = False
    is_even: bool = False
    formats: tuple[str, ...] = FORMATS


def case(seed: int, window: int) -> Case:
    """The case with this seed for a window in tokens.  Raises LookupError."""
    if seed < FIRST_DRAWN:
        if not 1 <= seed <= len(_HARD):
            raise LookupError(f"hard cases are 1 to {len(_HARD)}, drawn ones from {FIRST_DRAWN}")
        name, tell = list(_HARD.items())[seed - 1]
        return tell(seed, name, Teller(random.Random(f"{seed}/{window}")), window)
    return _drawn(seed, Teller(random.Random(f"{seed}/{window}")), window)


def seeds(count: int) -> list[int]:
    """``count`` seeds: the hard cases, then random ones."""
    hard = list(range(1, len(_HARD) + 1))[:count]
    return hard + list(range(FIRST_DRAWN, FIRST_DRAWN + count - len(hard)))


# --- hard cases ------------------------------------------------------------------------------


def _steps(tell: Teller, count: int, tokens: int) -> list[StoryTurn]:
    """Ordinary steps; every fourth has three parallel calls."""
    turns = []
    for number in range(count):
        calls = [tell.call(tokens) for _ in range(1 + (number % 4 == 0) * 2)]
        turns.append(tell.model(*calls, words=8 * (number % 3 > 0)))
    return turns


def _long(seed: int, name: str, tell: Teller, window: int) -> Case:
    turns = [tell.user(constraint=True), *_steps(tell, 40, window // 15)]
    return Case(seed, name, tell.story(turns))


def _giant_result(seed: int, name: str, tell: Teller, window: int) -> Case:
    turns = [tell.user(constraint=True), *_steps(tell, 4, window // 40)]
    return Case(seed, name, tell.story([*turns, tell.model(tell.call(window * 3))]))


def _giant_parallel(seed: int, name: str, tell: Teller, window: int) -> Case:
    turns = [tell.user(constraint=True), *_steps(tell, 4, window // 40)]
    giants = [tell.call(window // 3) for _ in range(10)]
    return Case(seed, name, tell.story([*turns, tell.model(*giants)]))


def _giant_arguments(seed: int, name: str, tell: Teller, window: int) -> Case:
    turns = [tell.user(constraint=True), *_steps(tell, 3, window // 40)]
    turns += [tell.model(tell.writing(window // 2), words=0) for _ in range(5)]
    return Case(seed, name, tell.story([*turns, *_steps(tell, 1, 50)]))


def _giant_user(seed: int, name: str, tell: Teller, window: int) -> Case:
    first = StoryTurn("user", "Summarize this log.\n" + tell.output(window * 3))
    return Case(seed, name, tell.story([first, *_steps(tell, 5, window // 40)]))


def _orphans(seed: int, name: str, tell: Teller, window: int) -> Case:
    steps = _steps(tell, 6, window // 60)
    steps[:2] = [StoryTurn("model", calls=turn.calls, lost=True) for turn in steps[:2]]
    return Case(seed, name, tell.story([tell.user(constraint=True), *steps]))


def _interrupted(seed: int, name: str, tell: Teller, window: int) -> Case:
    steps = _steps(tell, 6, window // 60)
    cut = tell.model(tell.call(0, result=False), tell.call(window // 60))
    return Case(seed, name, tell.story([tell.user(constraint=True), *steps[:3], cut, *steps[3:]]))


def _cut_off(seed: int, name: str, tell: Teller, window: int) -> Case:
    """The user spoke before the newest calls were answered."""
    cut = tell.model(tell.call(0, result=False), tell.call(0, result=False))
    turns = [tell.user(), *_steps(tell, 5, window // 20), cut, tell.user(constraint=True)]
    return Case(seed, name, tell.story(turns))


def _compacted(seed: int, name: str, tell: Teller, window: int) -> Case:
    """A compaction block of the provider is the first message."""
    summary = f"So far {tell.name()} was read and {tell.words(30)}."
    turns = [tell.user(constraint=True), *_steps(tell, 12, window // 10)]
    return Case(seed, name, tell.story(turns, summary), formats=_STATEFUL)


def _thinking(seed: int, name: str, tell: Teller, window: int) -> Case:
    turns = [tell.user(constraint=True)]
    turns += [tell.model(tell.call(window // 8), thinking=True) for _ in range(14)]
    return Case(seed, name, tell.story(turns))


def _constraints(seed: int, name: str, tell: Teller, window: int) -> Case:
    """Constraints early and late, with much in between."""
    turns = []
    for _ in range(4):
        turns += [tell.user(constraint=True), *_steps(tell, 3, window // 8)]
        turns.append(tell.model(words=20))
    return Case(seed, name, tell.story([*turns, tell.user()]))


def _small(seed: int, name: str, tell: Teller, window: int) -> Case:
    turns = [tell.user(constraint=True), *_steps(tell, 3, window // 40)]
    return Case(seed, name, tell.story(turns), grows=True)


def _only_words(seed: int, name: str, tell: Teller, window: int) -> Case:
    """No tool is called; user and model talk at length."""
    turns = []
    for _ in range(14):
        request = tell.user(words=window // 40)
        turns += [request, tell.model(words=window // 12)]
    return Case(seed, name, tell.story([*turns, tell.user(constraint=True)]))


def _even(seed: int, name: str, tell: Teller, window: int) -> Case:
    """A long session of steps of one size: a batch now and then is enough."""
    turns = [tell.user(constraint=True)]
    turns += [tell.model(tell.call(window // 20)) for _ in range(40)]
    return Case(seed, name, tell.story(turns), grows=True, is_even=True)


def _answered_later(seed: int, name: str, tell: Teller, window: int) -> Case:
    """The server's code calls a tool of the client; its result is in the model's next message, in
    which it may run more."""
    turns = [tell.user(constraint=True)]
    waiting: tuple[StoryCall, ...] = ()
    for number in range(12):
        code = () if number % 4 == 3 else (tell.running(),)
        step = tell.model(*code, tell.call(window // 9))
        turns.append(replace(step, answered=waiting))
        waiting = code
    return Case(seed, name, tell.story(turns), grows=True, formats=("anthropic",))


def _system_within(seed: int, name: str, tell: Teller, window: int) -> Case:
    """The system speaks behind the user's first message, and then behind every third step."""
    turns = [tell.user(constraint=True), tell.system()]
    for _ in range(4):
        turns += [*_steps(tell, 3, window // 10), tell.system()]
    formats = ("openai-chat", "openai-responses", "anthropic")
    return Case(seed, name, tell.story(turns), grows=True, formats=formats)


def _only_directives(seed: int, name: str, tell: Teller, window: int) -> Case:
    """Messages of the system without words, first and in between, that set an effort."""
    turns = [tell.system(effort="high"), tell.user(constraint=True)]
    for effort in ("low", "medium", "high"):
        turns += [*_steps(tell, 3, window // 7), tell.system(effort=effort)]
    return Case(seed, name, tell.story(turns), grows=True, formats=("anthropic",))


def _found_tools(seed: int, name: str, tell: Teller, window: int) -> Case:
    """Deferred tools, of which a search of the server and one of the client found one each, are
    called to the end."""
    turns = [tell.user(constraint=True)]
    turns += [
        tell.model(tell.finding(tool, by_server=number == 0), tell.call(window // 40))
        for number, tool in enumerate(DEFERRED)
    ]
    turns += [tell.model(tell.call(window // 8, DEFERRED[number % 2])) for number in range(12)]
    return Case(seed, name, tell.story(turns), grows=True, formats=_STATEFUL)


def _early_result(seed: int, name: str, tell: Teller, window: int) -> Case:
    """Results stand before their calls, as a log of streamed parallel calls has them."""
    turns = [tell.user(constraint=True), *_steps(tell, 2, window // 60)]
    turns += [replace(turn, early=True) for turn in _steps(tell, 2, window // 60)]
    turns += [*_steps(tell, 1, window // 60), *_steps(tell, 6, window // 6)]
    return Case(seed, name, tell.story(turns), grows=True)


_STATEFUL = ("anthropic", "openai-responses")
"""Those whose messages hold the provider's state: compaction blocks, and tools that it loads."""

_HARD: dict[str, Callable[[int, str, Teller, int], Case]] = {
    "long trace": _long,
    "giant last result": _giant_result,
    "ten giant parallel results": _giant_parallel,
    "giant call arguments": _giant_arguments,
    "giant first user message": _giant_user,
    "orphan results": _orphans,
    "interrupted call": _interrupted,
    "user spoke before the results": _cut_off,
    "compaction block in front": _compacted,
    "signed thinking": _thinking,
    "constraints early and late": _constraints,
    "small": _small,
    "only words": _only_words,
    "even steps": _even,
    "server's result in the next message": _answered_later,
    "system in mid-conversation": _system_within,
    "system message of directives only": _only_directives,
    "deferred tools that were found": _found_tools,
    "results before their calls": _early_result,
}


# --- drawn cases -----------------------------------------------------------------------------


def _drawn(seed: int, tell: Teller, window: int) -> Case:
    draw = tell.random
    even = seed % 3 == 0
    total = window * draw.choice((0.4, 1.0, 1.5, 2.5, 4.0))
    count = draw.randint(5, MAX_TURNS)
    each = total / count
    thinking = draw.randrange(4) == 0
    turns = [tell.user(constraint=draw.random() < 0.7)]
    for _ in range(count):
        turns.append(_step(tell, turns, each, even, thinking))
        if draw.random() < 0.2:
            turns += [
                tell.model(words=draw.randint(5, 60)),
                tell.user(constraint=draw.random() < 0.5),
            ]
    story = tell.story(_damaged(tell, turns) if draw.random() < 0.25 else turns)
    return Case(seed, "drawn", story, grows=draw.random() < 0.6, is_even=even)


def _step(
    tell: Teller, before: list[StoryTurn], tokens: float, even: bool, thinking: bool
) -> StoryTurn:
    """One step of about ``tokens``; sometimes a call is repeated, or has large arguments."""
    draw = tell.random
    parallel = draw.choice((1, 1, 1, 2, 3))
    size = tokens if even else tokens * draw.choice((0.1, 0.5, 1.0, 3.0))
    calls = []
    for _ in range(parallel):
        earlier = [call for turn in before for call in turn.calls if call.result is not None]
        if earlier and draw.random() < 0.12:
            calls.append(tell.again(draw.choice(earlier)))
        elif draw.random() < 0.12:
            calls.append(tell.writing(int(size / parallel)))
        else:
            calls.append(tell.call(int(size / parallel)))
    return tell.model(*calls, words=draw.choice((0, 6, 15)), thinking=thinking)


def _damaged(tell: Teller, turns: list[StoryTurn]) -> list[StoryTurn]:
    """The turns with one defect: a model's message is missing, or a call has no result."""
    steps = [number for number, turn in enumerate(turns) if turn.calls]
    at = tell.random.choice(steps)
    hurt = turns[at]
    if tell.random.random() < 0.5:
        hurt = StoryTurn("model", calls=hurt.calls, lost=True)
    else:
        cut = tell.call(0, result=False)
        hurt = StoryTurn("model", hurt.text, (cut, *hurt.calls[1:]), hurt.thinking)
    return [*turns[:at], hurt, *turns[at + 1 :]]
