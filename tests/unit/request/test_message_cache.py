"""What is kept of a conversation's messages changes no answer about the whole.

The oracle is a request that is read alone.
"""

from __future__ import annotations

import copy
import json
import random
from dataclasses import replace
from typing import Any

import histories
import pytest
import shapes
import stories
from effort import examples, seeds
from hypothesis import event, given
from hypothesis import strategies as st
from responses_cases import LOCAL, PROGRAM, SEARCH, call, output, said, thought, user
from soak.lasting import Lasting
from soak.story import FORMATS, Story
from soak.trial import Case as SoakCase
from soak.trial import case_of, messages_of
from soak.writers_more import WRITERS

import trimtab
from trimtab import formats
from trimtab.errors import InvalidRequest
from trimtab.formats import rules
from trimtab.formats.body import RequestBody
from trimtab.formats.engine.reading import ConversationReader
from trimtab.formats.rules import find_all
from trimtab.planning.lines import lines_of
from trimtab.planning.redundancy import FailedInputs, Redundancy
from trimtab.request.message_cache import MessageCache
from trimtab.transcript.model import Group, Message
from trimtab.transcript.tool_calls import CallReader
from trimtab.transcript.transcript import Prefix, Transcript

MOVES = ("on", "on", "on", "rewind", "fork", "change", "in place", "in place", "twice", "as bytes")
"""What a client may do to a conversation between two requests."""


def with_messages(request: Any, messages: list[Any]) -> Any:
    """The request with other messages."""
    if isinstance(request, list):
        return messages
    key = next(key for key in ("messages", "input", "contents") if key in request)
    return {**request, key: messages}


class Client:
    """A client that sends a conversation request by request, and the oddest things between."""

    def __init__(self, seed: int, case: SoakCase, others: list[Any]) -> None:
        self.rng, self.request = random.Random(seed), copy.deepcopy(case["request"])
        self.every, self.others = messages_of(self.request), copy.deepcopy(others)
        self.count = self.rng.randint(1, 3)
        self.bytes = False

    def next(self) -> Any:
        """The next request; the objects of messages that did not change are the same."""
        move, rng = self.rng.choice(MOVES), self.rng
        if move == "on":
            self.count += rng.choice((1, 1, 2, 2, 5))
        elif move == "rewind":
            self.count = rng.randint(1, self.count)
        elif move == "fork":
            at = rng.randint(1, self.count)
            self.every, self.others = [*self.every[:at], *self.others[at:]], self.every
        elif move == "change":  # an equal place, another object
            at = rng.randrange(min(self.count, len(self.every)))
            self.every = [*self.every[:at], changed(self.every[at]), *self.every[at + 1 :]]
        elif move == "in place":
            at = rng.randrange(min(self.count, len(self.every)))
            self.change_in_place(self.every[at])
        elif move == "twice":
            at = rng.randrange(min(self.count, len(self.every)))
            self.every = [*self.every[:at], self.every[at], *self.every[at:]]
        else:
            self.bytes = not self.bytes
        self.count = min(self.count, len(self.every))
        body = with_messages(self.request, self.every[: self.count])
        return json.dumps(body).encode() if self.bytes else body

    def change_in_place(self, message: Any) -> None:
        """The very object says something else from here on."""
        new = changed(message)
        if isinstance(message, dict):
            message.clear()
            message.update(new)


def changed(value: Any) -> Any:
    """A copy in which the longest texts are others; roles, ids and types stay."""
    if isinstance(value, dict):
        return {key: changed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [changed(inner) for inner in value]
    return f"{value} changed" if isinstance(value, str) and " " in value else copy.deepcopy(value)


def long_case(seed: int) -> tuple[SoakCase, list[Any]]:
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


def client_of(seed: int) -> tuple[Client, SoakCase]:
    """A conversation of any format, legal or broken, and another that it may fork to."""
    if seed % 4 == 0:
        case, others = long_case(seed)
    else:
        case, others = case_of(seed), messages_of(case_of(seed + 5)["request"])
    return Client(seed, case, others), case


def group_facts(group: Group) -> Any:
    """Everything that a group says."""
    return (
        group.first, group.last, tuple(group.numbers), group.closed, group.has_calls,
        group.partial, group.items, [(place.message, place.index) for place in group.places],
    )  # fmt: skip


def facts_of(transcript: Transcript) -> Any:
    """Everything that a transcript says: refs with their places, blocks, groups, format."""
    blocks = [
        (place.message, place.index, place.block.kind, place.block.text, place.block.digest,
         transcript.where(place), transcript.item(place), transcript.ref(place),
         transcript.group_number(place.message, place.index), transcript.tool(place))
        for place in transcript.places()
    ]  # fmt: skip
    refs = {ref: (place.message, place.index) for ref, place in transcript.refs.items()}
    groups = [group_facts(group) for group in transcript.groups]
    return transcript.format.name, transcript.base, transcript.facts, refs, blocks, groups


def read_alone(request: Any, format: str | None, model: str | None) -> Transcript:
    """One request, read as if nothing had been read before."""
    tree = copy.deepcopy(RequestBody.of(request).tree)
    return formats.read(tree, formats.find(tree, format)[0], model=model)


def turns(seed: int, count: int = 14, *, named: bool = True) -> Any:
    """(cache, transcript read by it, the same read alone) of one conversation."""
    client, case = client_of(seed)
    cache, wanted = MessageCache(), case["format"] if named else None
    for _ in range(count):
        request = client.next()
        try:
            alone = read_alone(request, wanted, case["model"])
        except InvalidRequest:  # parts of it are of no known shape
            continue
        transcript, _ = cache.read(RequestBody.of(request), wanted, case["model"])
        yield cache, transcript, alone
        cache.keep_only(transcript)


def differing(tried: range, *, named: bool = True) -> tuple[list[int], int]:
    """Seeds of which a request is read otherwise than alone; how many began with a known one."""
    wrong, known = list[int](), 0
    for seed in tried:
        for _, transcript, alone in turns(seed, named=named):
            known += transcript.prefix is not None and bool(transcript.prefix.messages)
            try:
                same = facts_of(transcript) == facts_of(alone)
            except (IndexError, KeyError, AssertionError):
                same = False
            if not same:
                wrong.append(seed)
                break
    return wrong, known


@pytest.mark.parametrize("named", [True, False], ids=["format named", "format found"])
def test_a_conversation_read_request_by_request_says_what_each_request_says_alone(
    named: bool,
) -> None:
    wrong, known = differing(seeds(40), named=named)
    assert wrong == []
    assert known > 100, "the beginnings were not recognised"


def test_a_prefix_of_another_conversation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would fail if every request were said to begin with what was read last."""
    monkeypatch.setattr(Prefix, "begins", lambda *_: True)
    wrong, _ = differing(range(20))
    assert len(wrong) > 15


@pytest.mark.parametrize("first", ["list", "body"])
def test_messages_that_come_bare_and_then_in_a_body_are_found_where_they_stand(first: str) -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "b"},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "d"},
    ]  # fmt: skip
    requests = [messages, {"messages": messages}]
    cache = MessageCache()
    for request in requests if first == "list" else requests[::-1]:
        transcript, _ = cache.read(RequestBody.of(request), "openai-chat", None)
        assert facts_of(transcript) == facts_of(read_alone(request, "openai-chat", None))
        cache.keep_only(transcript)


def test_a_format_that_changed_with_a_message_in_place_is_found_anew() -> None:
    messages: list[Any] = [{"role": role, "content": "x"} for role in ("user", "assistant", "user")]
    cache = MessageCache()
    assert cache.read(RequestBody.of({"messages": messages}), None, None)[0].format.name == (
        "openai-chat"
    )
    messages[1]["content"] = [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]
    messages[2]["content"] = [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]
    for more in ([], [{"role": "assistant", "content": "y"}, {"role": "user", "content": "z"}]):
        messages += more
        found = cache.read(RequestBody.of({"messages": messages}), None, None)[0]
        assert found.format.name == "anthropic"


def test_a_format_that_changed_with_what_stands_beside_the_messages_is_found_anew() -> None:
    messages = [{"role": "user", "content": "x"}]
    tool = {"name": "f", "input_schema": {"type": "object"}}
    cache, body = MessageCache(), {"messages": messages, "tools": []}
    for tools, name in (([], "openai-chat"), ([tool], "anthropic"), ([], "openai-chat")):
        body["tools"] = tools
        assert cache.read(RequestBody.of(body), None, None)[0].format.name == name


@pytest.mark.parametrize("last", [1, 31, 32, 98])
def test_a_change_in_place_is_noticed_in_every_message_of_a_long_history(last: int) -> None:
    messages = [{"role": "user", "content": f"{n}"} for n in range(98)]
    format, reader = formats.find(messages, "openai-chat")[0], ConversationReader()
    for end in range(1, len(messages)):
        before = reader.read(format, messages[:end])
    messages[last - 1]["content"] = "other"
    after = reader.read(format, messages)
    assert after[last - 1].blocks[0].text == "other"
    assert after[: last - 1] == before[: last - 1]
    messages[last - 1] = {"content": "other", "role": "user"}
    again = reader.read(format, messages)
    assert again[last - 1] is not after[last - 1], "another order of keys"
    assert again[: last - 1] == after[: last - 1]
    assert again[last:] == after[last:], "what is as it was is the same view"


def test_a_reader_whose_reading_failed_reads_on_as_if_nothing_had_been() -> None:
    request = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    chat, reader, broken = formats.find(request, "openai-chat")[0], ConversationReader(), False

    def read_message(message: Any) -> Message:
        if broken:
            raise TypeError
        return chat.read_message(message)

    format = replace(chat, read_message=read_message)
    first = reader.read(format, request[:1])
    broken = True
    with pytest.raises(TypeError):
        reader.read(format, request)
    broken = False
    assert reader.read(format, request[:1]) == first
    longer = reader.read(format, request)
    assert longer[:1] == first
    assert reader.read(format, request[:1]) == first
    other = reader.read(format, [request[0], {"role": "assistant", "content": "c"}])
    assert [block.text for message in other for block in message.blocks] == ["a", "c"]


# --- what is worked out from cached values --------------------------------------------------------


def redundancy_facts(found: Redundancy) -> list[Any]:
    """Every fact of every block."""
    return [(found.facts(place), found.depends_on(place)) for place in found.transcript.places()]


def test_facts_and_lines_from_the_cache_are_those_of_one_look_at_the_whole() -> None:
    compared = 0
    for seed in seeds(20):
        ages = FailedInputs(min_calls=0, min_turns=0) if seed % 2 else FailedInputs()
        for cache, transcript, alone in turns(seed, count=12):
            cached, fresh = (
                Redundancy(one, reader, failed_inputs=ages)
                for one, reader in ((transcript, cache.calls), (alone, CallReader()))
            )
            assert redundancy_facts(cached) == redundancy_facts(fresh), seed
            for one, other in zip(transcript.places(), alone.places(), strict=True):
                lines = list(cache.lines(one.block))
                assert lines == list(lines_of(other.block)), seed
                compared += len(lines)
    assert compared > 500


def test_a_history_that_is_asked_late_describes_its_own_conversation() -> None:
    """Reports work things out when they are asked, whatever turns came since."""
    for seed in (0, 4, 8):
        late = [
            (Redundancy(transcript, cache.calls), alone)
            for cache, transcript, alone in turns(seed, count=8)
        ]
        random.Random(seed).shuffle(late)
        for found, alone in late:
            fresh = Redundancy(alone, CallReader())
            assert redundancy_facts(found) == redundancy_facts(fresh)


# --- items of the Responses API -------------------------------------------------------------------


def items_of(draw: random.Random) -> list[Any]:
    """Items in any order: late answers, taken ids, tools called long after they were found, items
    that need reasoning which stands elsewhere, programs and references that excuse others."""
    tools = [{"type": "function", "name": name} for name in ("rate", "read")]
    found = {"type": "tool_search_output", "execution": "client", "tools": tools}
    web = {"type": "web_search_call", "status": "completed"}
    local = {**LOCAL, "id": "c2"}
    items: list[Any] = [user()]
    wild = draw.random() < 0.5
    for number in range(draw.randrange(4, 40)):
        name, own = draw.choice("abcdefghijkl"), f"c_{number}"
        legal = [
            user(), said(), [call(own), output(own)], [call(own, name="rate"), output(own)],
            [{**SEARCH, "call_id": own}, {**found, "call_id": own}], [thought(None), said()],
            [call(own), said(), output(own)],
            [thought(f"rs_{number}"), call(own, id=f"fc_{number}"), output(own)],
            call(own, id=f"fc_{number}"), {**web, "id": f"ws_{number}"},
        ]  # fmt: skip
        odd = [
            thought(f"rs_{draw.randrange(9)}"), thought(None), call(name), call(""),
            call(name, id=f"fc_{draw.randrange(20)}"), call(name, name="rate"), output(name),
            output(name), {**web, "id": f"ws_{draw.randrange(30)}"}, {**SEARCH, "call_id": name},
            {**found, "call_id": name}, {**local, "call_id": name}, output("c2"),
            {**PROGRAM, "call_id": name}, {"type": "item_reference", "id": f"fc_{name}"},
        ]  # fmt: skip
        items.append(draw.choice(legal + odd if wild else legal))
    return [item for one in items for item in (one if isinstance(one, list) else [one])]


@pytest.mark.parametrize("model", ["gpt-5.5", "deepseek-v4-flash"])
def test_items_in_any_order_are_grouped_and_judged_as_a_whole_when_they_come_one_by_one(
    model: str,
) -> None:
    known, broken, tried = 0, 0, seeds(60)
    for seed in tried:
        draw, cache, end = random.Random(seed), MessageCache(), 0
        items, open_tail = items_of(draw), draw.random() < 0.5
        while end < len(items):
            end = min(len(items), end + draw.choice([1, 1, 1, 2, 5]))
            body = RequestBody.of(items[:end])
            part, _ = cache.read(body, "openai-responses", model)
            alone = read_alone(items[:end], "openai-responses", model)
            assert list(map(group_facts, part.groups)) == list(map(group_facts, alone.groups)), (
                seed, end,
            )  # fmt: skip
            table = part.format.rules
            assert find_all(table, part, open_tail) == find_all(table, alone, open_tail), (
                seed,
                end,
            )
            expected = rules.check(alone, open_tail=open_tail)
            assert rules.check(part, open_tail=open_tail) == expected, (seed, end)
            known, broken = known + (part.prefix is not None), broken + bool(expected)
            cache.keep_only(part)
    assert known > 4 * len(tried)
    assert broken > len(tried)


# --- what is checked ------------------------------------------------------------------------------

CHAT_MODELS = (
    "gpt-5.1", "mistral-large-latest", "open-mixtral-8x7b", "deepseek-chat", "kimi-k2-thinking",
    "glm-4.6", "MiniMax-M2", "openrouter/auto",
)  # fmt: skip
MARKED = {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}}
Case = tuple[dict[str, Any], str, str | None]
"""Request, format, and the model it is for, where another than the request says."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Requests of all five formats, legal and broken ones."""
    format = draw(st.sampled_from(stories.FORMATS))
    if draw(st.booleans()):
        return _framed(stories.written(draw(stories.stories()), format), format), format, None
    body, model = draw(histories.of(format))
    if format == "openai-chat":
        model = draw(st.sampled_from(CHAT_MODELS))
    return _framed(body, format), format, model


def _framed(body: Any, format: str) -> dict[str, Any]:
    return body if isinstance(body, dict) else {key_of(format): body}


def key_of(format: str) -> str:
    return {"gemini": "contents", "openai-responses": "input"}.get(format, "messages")


def hurt(messages: list[Any], wound: str, place: int) -> list[Any]:
    """Another history with most of the same objects."""
    found = list(messages)
    if len(found) < 2:
        return found
    place %= len(found)
    if wound == "out":
        del found[place]
    elif wound == "twice":
        found.insert(place, found[place])
    elif wound == "swapped":
        found[place - 1], found[place] = found[place], found[place - 1]
    elif wound == "moved":
        found.append(found.pop(place))
    elif wound == "copied":
        found[place] = copy.deepcopy(found[place])
    elif wound == "marked" and isinstance(found[place], dict):
        found[place] = {**found[place], "content": _marked(found[place].get("content"))}
    return found


def _marked(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    mark = {"cache_control": {"type": "ephemeral"}}
    return [{**part, **mark} if isinstance(part, dict) else part for part in content]


WOUNDS = ("none", "none", "none", "out", "twice", "swapped", "moved", "copied", "marked")
STEPS = st.tuples(st.integers(0, 60), st.sampled_from(WOUNDS), st.integers(0, 60), st.booleans())


@examples(0.6)
@given(cases(), st.lists(STEPS, min_size=1, max_size=12), st.integers(0, 9))
def test_what_is_said_behind_known_messages_is_what_the_whole_check_says(
    case: Case, walk: list[tuple[int, str, int, bool]], opens: int
) -> None:
    body, format, model = case
    whole, cache = body.get(key_of(format)) or [], MessageCache()
    whole = whole if isinstance(whole, list) else []
    ends = list(range(1, len(whole) + 1)) if opens < 7 else []
    steps = [(end, "none", 0, opens % 2 == 0) for end in ends] + walk
    for end, wound, place, open_tail in steps:
        messages = hurt(whole[: end % (len(whole) + 1)], wound, place)
        request = {**body, key_of(format): messages}
        transcript, _ = cache.read(RequestBody.of(request), format, model)
        alone = read_alone(request, format, model)
        expected = rules.check(alone, open_tail=open_tail)
        assert rules.check(transcript, open_tail=open_tail) == expected
        assert facts_of(transcript) == facts_of(alone)
        if transcript.prefix:
            event(f"{format}: {'broken' if expected else 'sound'} behind known messages")
        cache.keep_only(transcript)


@pytest.mark.parametrize(
    ("format", "before", "then", "ends", "rule"),
    [
        # The first breaks nothing; the second is the same, ended or meant otherwise.
        ("bedrock", {}, {}, 1, "roles_alternate"),
        ("bedrock", {}, {"modelId": "us.meta.llama4"}, 0, "mixed_turn"),
        ("openai-chat", {"model": "gpt-5.1"}, {"model": "mistral-large-latest"}, 1, "id_format"),
        ("anthropic", {}, {"system": [MARKED] * 5}, 0, "too_many_marks"),
        ("anthropic", {"system": [MARKED] * 4}, {"system": [MARKED] * 4}, 1, "too_many_marks"),
    ],
)
def test_what_a_known_beginning_and_a_new_end_break_together_is_found(
    format: str, before: dict[str, Any], then: dict[str, Any], ends: int, rule: str
) -> None:
    short, cache = shapes.session(format, steps=3, lines=1), MessageCache()
    content = [MARKED] if format == "anthropic" else [{"text": "And?"}]
    end = {"role": "user", "content": content if format != "openai-chat" else "And?"}
    longer = {**short, **then, "messages": [*short["messages"], *[end] * ends]}
    first, _ = cache.read(RequestBody.of({**short, **before}), format, None)
    assert rules.check(first) == ()
    assert first.groups
    cache.keep_only(first)
    second, _ = cache.read(RequestBody.of(longer), format, None)
    found = rules.check(second)
    assert found == rules.check(read_alone(longer, format, None))
    assert rule in {violation.rule for violation in found}


def test_a_rule_that_raises_is_named_in_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    body = shapes.session("anthropic", steps=5, lines=1)
    session = trimtab.Session(window=10**6, reserve=0)
    format = formats.FORMATS["anthropic"]
    table = replace(format.rules, scans=(*format.rules.scans, _raising))
    monkeypatch.setitem(formats.FORMATS, "anthropic", replace(format, rules=table))
    for _ in range(2):
        warnings = session.fit(body).report.warnings
        assert any("ValueError: a fault" in warning for warning in warnings)


def _raising(transcript: Transcript, open_tail: bool) -> Any:
    raise ValueError("a fault")
