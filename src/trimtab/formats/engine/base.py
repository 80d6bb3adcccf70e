"""What a format is, and the code that formats share to read and write parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from trimtab.formats.engine import payloads
from trimtab.formats.engine.api_path import ApiPath
from trimtab.formats.engine.own_tools import WhyNoTool
from trimtab.formats.engine.parts import PartTable
from trimtab.formats.engine.rewriter import AnswerRewriter
from trimtab.formats.engine.rule import RuleTable, Shape
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path, PathOp
from trimtab.transcript.model import Block, Facts, Group, Message, Part, Place
from trimtab.transcript.tokens import DOCUMENT_TOKENS, IMAGE_TOKENS
from trimtab.transcript.transcript import Transcript

Tree = Any


class MakeTextPart(Protocol):
    """Makes a text part; ``marked`` is a cache breakpoint to carry."""

    def __call__(self, text: str, *, marked: Any = None) -> Tree: ...


class MakeTextMessage(Protocol):
    """Makes a whole message of one text; ``marked`` is a cache breakpoint to carry."""

    def __call__(self, role: str, text: str, *, marked: Any = None) -> Tree: ...


class MakeAnswered(Protocol):
    """Makes of a result (a part, or a message where results are messages) one whose content is
    ``text``; ``marked`` is a cache breakpoint to carry."""

    def __call__(self, result: Tree, text: str, *, marked: Any = None) -> Tree: ...


def any_call(message: Message, part: Part) -> bool:
    """``may_anchor`` of formats in which the client runs every call."""
    return True


def no_dependents(transcript: Transcript, place: Place) -> tuple[Path, ...]:
    """``dependent_paths`` of formats in which nothing refers to a block."""
    return ()


def no_mark(part: Tree) -> Any:
    """``mark_of`` of formats without cache breakpoints."""
    return None


def never(value: Any) -> bool:
    """A condition that does not exist in a format."""
    return False


def no_dialect(host: str, headers: Mapping[str, str]) -> str:
    """``dialect_at`` of formats that one provider alone speaks."""
    return ""


def no_version(headers: Mapping[str, str]) -> str:
    """``version_in`` of APIs without dated versions."""
    return ""


def same_facts(facts: Facts, variant: str) -> Facts:
    """``facts_in`` of formats without dialects and versions."""
    return facts


def any_tool(body: Mapping[str, Any]) -> str:
    """``why_no_tool`` of formats that take a tool of ours beside everything."""
    return ""


def no_option(tree: Tree) -> tuple[PathOp, ...]:
    """``drop_block_ops`` of formats without such an option."""
    return ()


@dataclass(frozen=True, eq=False, repr=False)
class Format:
    """One request format: how it is read, written and recognised, and what its provider refuses.

    Each format's folder builds its own in ``__init__.py``.  All functions are pure; trees are never
    changed.
    """

    name: str

    # --- how it is read ---

    detect: Callable[[Tree], str | None]
    """Why this tree is of this format, or None."""
    read_head: Callable[[Tree], tuple[Block, ...]]
    """Blocks for system text, tool definitions and everything else outside the messages."""
    read_facts: Callable[[Tree, str | None], Facts]
    """Model (the second argument, if the caller named one), output limit, thinking mode, declared
    tools."""
    read_message: Callable[[Tree], Message]
    """One message as blocks and parts."""
    groups: Callable[[Transcript], tuple[Group, ...]]
    """The groups of the messages, in order."""
    table: PartTable
    """Where the parts of its messages are."""
    rewriter: type[AnswerRewriter]
    """Takes answers in, and makes one of several."""

    # --- how it is written ---

    text_part: MakeTextPart
    text_message: MakeTextMessage
    result_parts: Callable[[Sequence[Part], str], list[Tree]]
    """Results with a text for these calls: parts of a user message, or whole messages; which,
    ``results_in_user`` says."""
    call_alone: Callable[[Tree, Tree, str], list[Tree]]
    """(the model's message, one of its calls, words) → the message with nothing left but the words
    and this call.  A list, since some formats write the two as separate items."""
    answered: MakeAnswered

    # --- what its provider refuses ---

    rules: RuleTable
    shape: Shape

    # --- how it is recognised, and what it is called ---

    aliases: tuple[str, ...] = ()
    """What people call it who name its provider, its models or its address."""
    provider: str = ""
    """Whose API it is, as OpenTelemetry's conventions spell it (``gen_ai.provider.name``)."""
    api_paths: tuple[ApiPath, ...] = ()
    hosts: str = ""
    """A pattern of its provider's host names; "": they tell nothing."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Beginning of a header's name, in lower case → the key that such a body has; "" for any."""
    state_keys: tuple[str, ...] = ()
    """Keys of a body for messages that the server holds: then ``messages_key`` may be missing."""
    needs_parts: bool = False
    """Whether a list of messages of which none has ``content_key`` is not of this format."""
    is_own: Callable[[Mapping[str, Any]], bool] = never
    """Whether a message can be of this format and of hardly any other."""
    told_from: Mapping[str, Callable[[Tree], str | None]] = field(default_factory=dict)
    """Format that is asked before this one → why a tree is of this one all the same; or None."""
    dialects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Dialect that ``format="NAME:DIALECT"`` takes → what else people call it."""
    dialect_at: Callable[[str, Mapping[str, str]], str] = no_dialect
    """The dialect that a host and headers (names in lower case) show; "" for none."""
    versions: tuple[str, ...] = ()
    """Versions of the provider's API that our rules tell apart, oldest first."""
    version_in: Callable[[Mapping[str, str]], str] = no_version
    """The version that headers ask for, if it is not the oldest."""
    facts_in: Callable[[Facts, str], Facts] = same_facts
    """The facts of a request that is said to be in this dialect or version."""

    # --- where it differs from the others ---

    system_key: str = ""
    """The key of a body for the system prompt; "": it is a message."""
    system_is_text: bool = False
    """Whether the system prompt is one text, instead of parts."""
    model_key: str = "model"
    """The key of a body for the model; "": the address names it."""
    head_keys: tuple[str, ...] = ()
    """The keys beside the messages that ``read_head`` reads."""
    merges_roles: bool = False
    """Whether the provider merges neighbouring messages of one role before it checks pairs."""
    results_in_user: bool = False
    """Whether tool results are parts of a user message (else they are messages of their own)."""
    results_alone: bool = False
    """Whether a message with results must not have text."""
    places_system: bool = False
    """Whether a system message among the others has to follow the user and to precede the model."""
    cuts_silently: bool = False
    """Whether some of its servers cut a long prompt without saying so."""
    thoughts_stay: bool = False
    """Whether thoughts go with their whole step or not at all."""
    reasoners: frozenset[str] = frozenset()
    """Dialects that require the reasoning of messages with calls to be sent back."""
    may_anchor: Callable[[Message, Part], bool] = any_call
    """Whether this call can be kept alone in its message, with a result that we write."""
    text_results: tuple[str, ...] = ()
    """Types of the messages that may be the result of such a call; () for all."""
    text_at: Callable[[Path, str], Tree] | None = None
    """The value that holds a text at a path, where not every place takes a text part."""
    dependent_paths: Callable[[Transcript, Place], tuple[Path, ...]] = no_dependents
    """Paths to delete together with this block, such as an id that refers to it."""
    mark_of: Callable[[Tree], Any] = no_mark
    """The cache breakpoint that this part carries, or None."""
    binds_reasoning: Callable[[Facts], bool] = never
    """Whether the request's model refuses reasoning after anything before it has changed."""
    why_no_tool: WhyNoTool = any_tool
    """Why a request gets no tool of ours; "" if it may."""
    warm_request: Callable[[dict[str, Any], int], dict[str, Any] | None] | None = None
    """(body, output tokens) → the request that keeps its prompt cached for no or so few output
    tokens, None where the provider would not take that; None: the API has no such request."""
    deferred_tools: str = ""
    """How a request has the provider load tools only when they are needed, in words for its user;
    "" where its API has no way."""
    drop_block_ops: Callable[[Tree], tuple[PathOp, ...]] = no_option
    """Operations that ask the API to drop reasoning which no longer fits what precedes it."""

    @property
    def messages_key(self) -> str:
        """The key of a body that holds its messages."""
        return self.table.messages

    @property
    def content_key(self) -> str:
        """The key of a message that holds its parts."""
        return self.table.content

    def base(self, tree: Tree) -> Path:
        """The path of the list of messages: ``("messages",)``, or ``()`` for a bare list."""
        return () if isinstance(tree, list) else (self.messages_key,)

    def named_in(self, headers: Mapping[str, str]) -> str:
        """Its name, with the version that headers ask for, as ``format=`` takes it."""
        version = self.version_in(headers)
        return f"{self.name}:{version}" if version else self.name

    def in_variant(self, variant: str) -> Format:
        """This format in a dialect, or as a version of its API takes it; only facts differ."""

        def read_facts(tree: Tree, model: str | None) -> Facts:
            return self.facts_in(self.read_facts(tree, model), variant)

        return replace(self, read_facts=read_facts)

    def results_message(self, parts: list[Tree]) -> Tree:
        """A user message that holds result parts; only where ``results_in_user``."""
        return {"role": "user", self.content_key: parts}

    def text_instead(self, path: Path, text: str, *, marked: Any = None) -> Tree:
        """The value that takes the place of the part at ``path`` and holds ``text``."""
        if self.text_at is not None:
            return self.text_at(path, text)
        return self.text_part(text, marked=marked)


# --- shared by the formats -------------------------------------------------------------------


def compact(value: Tree) -> str:
    """Compact JSON as the model is assumed to read it."""
    return paths.dump(value)


def payload_digest(value: Tree) -> str:
    """A digest of 16 hex characters that identifies a payload without keeping it."""
    data = paths.dump(value).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def other_block(value: Tree, path: Path) -> Block:
    """A part of unknown type: sent unchanged, counted as its JSON."""
    return Block("other", path, path, compact(value), sealed=True)


def linking_ids(value: Tree) -> tuple[str, ...]:
    """The ids in a part that we don't know (``id``, ``…_id``, ``…Id``): by one that equals
    another part's the two belong together."""
    ids = list[str]()
    for key, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, dict):
            ids += linking_ids(inner)
        elif isinstance(inner, str) and inner and (key == "id" or key.endswith(("_id", "Id"))):
            ids.append(inner)
    return tuple(ids)


def media_block(value: Tree, path: Path, kind: str) -> Block:
    """An image or a document: a fixed cost, replaceable by a text part."""
    size = len(compact(value))
    # A page of PDF costs 1,500–3,000 tokens (Anthropic's PDF guide) and is some 50 kB: chars / 20.
    cost = IMAGE_TOKENS if kind == "image" else max(DOCUMENT_TOKENS, size // 20)
    return Block(
        "media", path, path, "", spelling="part", fixed_tokens=cost, payload_bytes=size,
        media="image" if kind == "image" else "document", identity=payload_digest(value),
        picture=payloads.picture(value) if kind == "image" else None,
    )  # fmt: skip


def may_answer(message: Message, role: str) -> bool:
    """Whether this message can hold results: it has the role ``role``, or it is a user message
    with results."""
    return message.role == role or (message.role == "user" and bool(message.results))


# --- content parts with a ``type`` and a ``cache_control``: Chat Completions and Anthropic ---


def text_part(text: str, *, marked: Any = None) -> Any:
    """``{"type": "text", "text": …}``, with this cache breakpoint if there is one."""
    return {"type": "text", "text": text} | ({"cache_control": marked} if marked else {})


def text_message(role: str, text: str, *, marked: Any = None) -> Any:
    """A message of one text; with a breakpoint its content is a list of one part."""
    return {"role": role, "content": [text_part(text, marked=marked)] if marked else text}


def mark_of(part: Any) -> Any:
    """The ``cache_control`` of a part, or None."""
    return part.get("cache_control") if isinstance(part, dict) else None


def in_result(block: Block, call_id: str | None) -> Block:
    """The block as part of the result of this call; unchanged if ``call_id`` is None."""
    return block if call_id is None else replace(block, call_id=call_id)


def text_or_none(value: Any) -> str | None:
    """``value`` if it is a text: a model that is named by anything else is not known."""
    return value if isinstance(value, str) else None


def _no_constant(name: str) -> None:
    raise ValueError(name)


_STRICT = json.JSONDecoder(parse_constant=_no_constant).decode


def json_flaw(text: str) -> str:
    """ "json" for arguments that a strict parser rejects, else ""."""
    try:
        _STRICT(text)
    except (ValueError, RecursionError):
        return "json"
    return ""


HOUR, FIVE_MINUTES = 3600, 300
"""Seconds: the two lifetimes that Anthropic and Bedrock offer (``ttl``: "1h", "5m"; default 5m)."""


def breakpoint_facts(points: Iterable[tuple[Path, Any]]) -> Mapping[str, Any]:
    """``late_hours``: paths of breakpoints of an hour behind one of five minutes, which are
    refused; ``cache_seconds``: the longest lifetime, None without breakpoints.

    ``points``: (path, breakpoint) in the order in which the API reads them.
    """
    late, seconds, short = list[Path](), None, False
    for path, mark in points:
        hour = isinstance(mark, dict) and mark.get("ttl") == "1h"
        if hour and short:
            late.append(path)
        short = short or not hour
        seconds = HOUR if hour else seconds or FIVE_MINUTES
    return {"late_hours": tuple(late), "cache_seconds": seconds}
