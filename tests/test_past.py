"""What is carried on about calls changes no fact, however a conversation grew or forked."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from threading import Thread
from typing import Any

import pytest
from soak.lasting import Lasting
from soak.story import FORMATS, Story
from soak.trial import Case, case_of, messages_of
from soak.writers_more import WRITERS

from trimtab.index import mixed
from trimtab.model import Transcript
from trimtab.planning.remains import remains_of
from trimtab.planning.scope import Choice, Scope
from trimtab.reading.exchanges import Reader
from trimtab.reading.history import FailedInputs, History
from trimtab.reading.known import Known
from trimtab.reading.past import Past
from trimtab.reading.source import Source
from trimtab.reading.usage import Usage
from trimtab.strategies import Config
from trimtab.tokens import counter_for


def transcripts(case: Case, others: list[Any], count: int, rng: random.Random) -> Any:
    """(what one memo remembers, a transcript): two branches of one history, in any order of
    lengths, now and then read anew."""
    known, request = Known(), case["request"]
    every = messages_of(request)
    branches = [every, [*every[: len(every) // 2], *others[1:]]]
    for _ in range(count):
        branch = rng.choice(branches)
        told = branch[: rng.randint(1, len(branch))]
        told = json.loads(json.dumps(told)) if rng.random() < 0.5 else told
        body = told
        if not isinstance(request, list):
            key = next(k for k in ("messages", "input", "contents") if k in request)
            body = {**request, key: told}
        yield known, known.read(Source.of(body), case["format"], case["model"]).transcript


def long_case(seed: int) -> tuple[Case, list[Any]]:
    """A session in which files come again and again, and another that goes on otherwise."""
    played, stories = Lasting(seed, FORMATS[seed % len(FORMATS)]), list[Story]()
    for _ in range(2):
        for _ in range(30):
            played.step()
        stories.append(list(played.told))
        played.told = played.told[:1]
    requests = [WRITERS[played.format](story, played.frame) for story in stories]
    case = {"format": played.format, "model": played.frame.model, "request": requests[0]}
    return case, messages_of(requests[1])


def told(history: History, transcript: Transcript) -> list[Any]:
    """Every fact of every block."""
    return [
        (history.facts(place), history.action(place), history.rests_on(place))
        for place in transcript.places()
    ]


def held(transcript: Transcript, rng: random.Random) -> Choice:
    """Some blocks pinned, some spared."""
    keys = [(place.message, place.index) for place in transcript.places()]
    pins, spared = (rng.sample(keys, min(len(keys), rng.choice((0, 1, 3)))) for _ in range(2))
    refs = frozenset(transcript.ref_of[key] for key in pins)
    return Choice(Config(len), (), pinned=refs, spared=frozenset(spared))


def rows(scope: Scope, first: int, end: int) -> list[tuple[int, int]]:
    """``Scope.spans``, group by group."""
    groups, found = scope.transcript.groups, list[tuple[int, int]]()
    for number in range(first, min(end, len(groups))):
        if not scope.droppable(number, spared=False):
            continue
        if (
            found
            and found[-1][1] == number - 1
            and scope.transcript.adjoin(groups[number - 1], groups[number])
        ):
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_what_is_carried_on_from_turn_to_turn_is_what_one_look_at_the_whole_tells(
    first: int,
) -> None:
    spans, usage = 0, Usage(counter_for("o200k", model=None, format=""))
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        drawn = case_of(seed), messages_of(case_of(seed + 5)["request"])
        case, others = long_case(seed) if seed % 4 == 0 else drawn
        for known, transcript in transcripts(case, others, 6, rng):
            ages = rng.choice((FailedInputs(), FailedInputs(min_calls=0, min_turns=0)))
            shared, alone = (
                History(transcript, past, failed_inputs=ages)
                for past in (known.past, Past(Reader()))
            )
            with known.past.lent():
                assert told(shared, transcript) == told(alone, transcript), seed
            end = rng.randint(0, len(transcript.messages))
            assert known.remains(transcript, end)._at == remains_of(transcript, end)._at, seed
            index, groups, adjoin = transcript.index.rows, transcript.groups, transcript.adjoin
            assert index.stops == [
                number
                for number, (before, group) in enumerate(pairwise(groups), 1)
                if not adjoin(before, group) or mixed(transcript, before)
            ], seed
            scope = Scope(transcript, usage, held(transcript, rng), 10_000)
            begin, end = sorted(rng.choices(range(len(groups) + 2), k=2))
            found = list(scope.spans(begin, end))
            assert found == rows(scope, begin, end), seed
            spans += len(found)
    assert spans > 50


def test_one_that_is_asked_late_tells_of_its_own_conversation() -> None:
    """Reports work things out when they are asked, whatever turns came since."""
    for seed in range(3):
        case, others = long_case(seed)
        late = [
            (transcript, History(transcript, known.past))
            for known, transcript in transcripts(case, others, 8, random.Random(seed))
        ]
        random.Random(seed).shuffle(late)
        for transcript, history in late:
            assert told(history, transcript) == told(
                History(transcript, Past(Reader())), transcript
            )


def test_one_that_another_thread_asks_leaves_what_the_turn_under_way_reads_alone() -> None:
    case, others = long_case(1)
    first, *_, (known, now) = transcripts(case, others, 6, random.Random(1))
    history, late = History(now, known.past), History(first[1], known.past)
    asked: list[Any] = []
    with known.past.lent():
        history.facts(now.at(0, 0))
        thread = Thread(target=lambda: asked.append(told(late, first[1])))
        thread.start()
        thread.join()
        assert known.past.transcript is now
    assert asked == [told(History(first[1], Past(Reader())), first[1])]
