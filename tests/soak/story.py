"""Agent histories drawn fast: a list of messages of parts, in no provider's spelling.

Everything is put together from small pools of shared strings, so that a history costs a fraction
of a millisecond and its texts are counted once in a run.  Knows what agents and their users do;
knows no wire format (writers.py) and nothing that is wrong (mutations.py).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

FORMATS = ("openai-chat", "openai-responses", "anthropic", "bedrock", "gemini")
INTERACTIONS = "gemini-interactions"
"""Drawn where it is asked for: a seed stands for the same case of the five as ever."""
SIX = (*FORMATS, INTERACTIONS)

MODELS: dict[str, tuple[str | None, ...]] = {
    "openai-chat": (None, "gpt-4o", "gpt-5.1", "deepseek-chat"),
    "openai-responses": ("gpt-5.1", "gpt-5.1-codex", "gpt-5.1", None, "deepseek-v4-flash"),
    "anthropic": (
        *(None, "claude-sonnet-4-20250514", "claude-sonnet-4-5", "claude-opus-4-6"),
        *("claude-sonnet-5", "claude-opus-5-5", "claude-fable-5-1"),
    ),
    "bedrock": (
        *("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "eu.anthropic.claude-opus-4-6-v1"),
        *("anthropic.claude-opus-5-5-v1:0", "us.amazon.nova-pro-v1:0", "moonshot.kimi-k2-thinking"),
        *("us.meta.llama3-3-70b-instruct-v1:0", "mistral.mistral-large-2402-v1:0"),
        "us.deepseek.r1-v1:0",
    ),
    "gemini": (None, "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3-pro-image-preview"),
    "gemini-interactions": (None, "gemini-2.5-pro", "gemini-3.8-flash"),
}

# --- the pools ------------------------------------------------------------------------------------

UNITS = (
    "The build failed in src/app.py line 42: NameError: name 'window' is not defined\n",
    "2024-05-01T12:00:00Z INFO worker-7 request 5f3a9c done in 12 ms\n",
    "def f(x):\n    return x + 1\n\n",
    '{"id": 17, "name": "Ada", "tags": ["a", "b"], "ok": true}\n',
    '{\n    "path": "/srv/data/report.csv",\n    "rows": 1200,\n    "ratio": 0.50\n}\n',
    "\x1b[31merror\x1b[0m: cannot find module 'left-pad'   \n",
    "same line\n",
    "Загрузка завершена: 100 %\r",
    "这是一个用于测试的句子，包含标识符 user_42。",
    "👩‍👩‍👧‍👦🚀 e\u0301 ﬃ ",
    '\\"quoted\\" <b>&amp;</b> \u2028 \x7f ',
    "aGVsbG8gd29ybGQh" * 4,
    "[trimtab: 120 lines cut; run the tool again] ",
    "Please look at the tests once more and tell me what is missing there. ",
)


def _pool(seed: int, count: int, least: int, most: int) -> tuple[str, ...]:
    """So many texts of ``least`` to ``most`` units."""
    rng = random.Random(seed)
    return tuple(
        f"{rng.randrange(100)} {rng.choice(UNITS) * rng.randint(least, most)}".strip()
        for _ in range(count)
    )


def _listing(seed: int, rows: int) -> str:
    """A JSON list of so many records, as a tool would print it."""
    rng = random.Random(seed)
    row = '{{"id": {}, "name": "item {}", "price": {}.50, "note": "{}"}}'
    return "[" + ", ".join(row.format(n, n, rng.randrange(99), "x" * n) for n in range(rows)) + "]"


SHORT = ("ok", "Go on.", "42", *_pool(1, 40, 1, 1))
MIDDLE = (*_pool(2, 40, 3, 12), _listing(1, 6))
LONG = (*_pool(3, 24, 20, 80), _listing(2, 30))
HUGE = (*_pool(4, 6, 150, 400), _listing(3, 120))
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {},
    {"path": "src/app.py"},
    {"path": "b/ü.md", "start": 1, "end": 80},
    {"command": "grep -rn window src | head -50", "timeout": 30},
    {"n": 1e300, "deep": {"list": [None, True, 1.5, "x"]}, "old": "", "Ω": "é"},
    *({"path": "n.txt", "content": text} for text in MIDDLE[:12]),
    *({"path": "n.txt", "content": text} for text in LONG[:2]),
)
TOOLS = ("read_file", "bash", "search-web", "edit", "patch", "shell")


def text_of(rng: random.Random) -> str:
    """A text: mostly short, now and then long."""
    return rng.choice(_MIX[int(rng.random() * len(_MIX))])


_MIX = (SHORT,) * 9 + (MIDDLE,) * 9 + (LONG,) * 2

# --- the story ------------------------------------------------------------------------------------


class Part:
    """One part of a message.

    ``kind``: text | thought | call | result | image | document | server | odd; ``tag`` tells equal
    parts apart (item ids and signatures come of it); ``shape`` is how a writer spells it.
    """

    __slots__ = ("arguments", "id", "kind", "name", "shape", "tag", "text")

    def __init__(
        self, kind: str, tag: int, text: str = "", shape: str = "", id: str = "", name: str = ""
    ) -> None:
        self.kind, self.tag, self.text, self.shape = kind, tag, text, shape
        self.id, self.name = id, name
        self.arguments: Any = None

    def copy(self) -> Part:
        """Another part that says the same."""
        other = Part(self.kind, self.tag, self.text, self.shape, self.id, self.name)
        other.arguments = self.arguments
        return other


class Message:
    """A message of the user, the model or the system; results stand in messages of the user."""

    __slots__ = ("parts", "role")

    def __init__(self, role: str, parts: list[Part]) -> None:
        self.role, self.parts = role, parts

    def copy(self) -> Message:
        """Another message that says the same."""
        return Message(self.role, [part.copy() for part in self.parts])


Story = list[Message]


@dataclass(slots=True)
class Frame:
    """What stands around the messages, and habits of the client that wrote them."""

    model: str | None
    bare: bool  # a list of messages, nothing else
    system: str
    listed: bool  # texts as lists of parts
    tools: bool  # declared
    thinking: str  # "" | enabled | adaptive
    ids: str  # of calls: global | turn | none (Gemini); of items (Responses): all or none
    signed: bool  # thoughts and calls carry their signatures
    snake: bool  # Gemini's other spelling
    odd: bool  # fields nobody knows


class Draw:
    """The dice of one history, and the next tag."""

    __slots__ = ("_tag", "rng")

    def __init__(self, rng: random.Random) -> None:
        self.rng, self._tag = rng, 0

    def tag(self) -> int:
        """A number no other part has."""
        self._tag += 1
        return self._tag

    def one_in(self, times: int) -> bool:
        """True once in so many times."""
        return self.rng.random() * times < 1

    def pick(self, pool: Any) -> Any:
        """One of these."""
        return pool[int(self.rng.random() * len(pool))]


def frame(draw: Draw, format: str) -> Frame:
    """A client and its model."""
    model = draw.pick(MODELS[format])
    new = any(name in (model or "") for name in ("-5", "fable", "opus-5"))
    return Frame(
        model, draw.one_in(8), draw.pick(SHORT) if draw.one_in(2) else "", draw.one_in(2),
        draw.one_in(2), draw.pick(("", "", "adaptive" if new else "enabled")),
        draw.pick(("global", "global", "turn", "none")), not draw.one_in(8), draw.one_in(4),
        draw.one_in(6),
    )  # fmt: skip


def story(draw: Draw, frame: Frame, format: str) -> Story:
    """A history without a fault of its own (some models refuse a mixture it may contain)."""
    apart = format in ("openai-chat", "openai-responses", "gemini-interactions")
    steps = 6 + int(draw.rng.random() * (8 if apart else 14))
    told = [_user(draw)]
    while steps > 0:
        steps -= 1
        dice = draw.rng.random()
        if dice < 0.72 or told[-1].role != "user":
            told += _turn(draw, frame, len(told))
            if told[-1].role == "user" and draw.one_in(9):
                told[-1].parts.append(Part("text", draw.tag(), draw.pick(SHORT)))
        else:
            shape = "thinking" if draw.one_in(3) else ""
            thought = [Part("thought", draw.tag(), draw.pick(SHORT))] if shape else []
            said = Part("text", draw.tag(), text_of(draw.rng))
            told += [Message("assistant", [*thought, said]), _user(draw)]
            if not format.startswith("gemini") and draw.one_in(30):
                told.append(Message("system", [Part("text", draw.tag(), draw.pick(SHORT))]))
                told += _turn(draw, frame, len(told))
    return _ended(draw, told)


def _user(draw: Draw) -> Message:
    """The user speaks, now and then with a file."""
    parts = [Part("text", draw.tag(), text_of(draw.rng), draw.pick(("", "", "", "marked")))]
    if draw.one_in(12):
        kind = draw.pick(("image", "image", "document", "odd"))
        parts.append(Part(kind, draw.tag(), shape=draw.pick(("pdf", "csv"))))
    return Message("user", parts)


def _turn(draw: Draw, frame: Frame, number: int) -> Story:
    """A model turn with one to four calls, and what came back."""
    said: list[Part] = []
    if draw.one_in(2):
        shape = "sealed" if draw.one_in(6) else ""
        said.append(Part("thought", draw.tag(), draw.pick(SHORT), shape))
    if draw.one_in(2):
        said.append(Part("text", draw.tag(), draw.pick(SHORT)))
    if draw.one_in(25):
        said.append(Part("server", draw.tag(), draw.pick(SHORT)))
    answers: list[Part] = []
    for index in range(draw.pick((1, 1, 1, 2, 2, 3, 4))):
        call_id = f"call_{index}" if frame.ids == "turn" else f"call_{number}_{index}"
        call = Part("call", draw.tag(), "", "", call_id, draw.pick(TOOLS))
        call.arguments = draw.pick(ARGUMENTS)
        said.append(call)
        shape = draw.pick(("",) * 8 + ("list", "json", "image", "error", "none", "odd"))
        answers.append(Part("result", draw.tag(), text_of(draw.rng), shape, call_id, call.name))
    if draw.one_in(8):
        draw.rng.shuffle(answers)
    return [Message("assistant", said), Message("user", answers)]


def _ended(draw: Draw, told: Story) -> Story:
    """With results, with the user's words, or (where a model may go on) with its own."""
    dice = draw.rng.random()
    if dice < 0.45:
        while len(told) > 2 and told[-1].parts[-1].kind != "result":
            told.pop()
    elif dice < 0.9:
        told = told if told[-1].parts[-1].kind != "result" else _spoken(draw, told)
    else:
        told = _spoken(draw, told) if told[-1].role == "assistant" else told
        told.append(Message("assistant", [Part("text", draw.tag(), "Well, then I shall")]))
    return told


def _spoken(draw: Draw, told: Story) -> Story:
    answer = Message("assistant", [Part("text", draw.tag(), draw.pick(SHORT))])
    between = [] if told[-1].role == "assistant" else [answer]
    return [*told, *between, _user(draw)]
