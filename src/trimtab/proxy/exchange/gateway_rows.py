"""The rows that a gateway hands over, as a request that can be fitted, and the rows it gets back.

A gateway keeps the system text, the newest exchange and what the model said to itself.  So the
results that come have no calls: each gets one here, else it would count as an orphan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

from trimtab.journal.archive import marked, with_markers
from trimtab.journal.hashes import hash_of
from trimtab.jsontext.paths import Path, Set, apply
from trimtab.report import ReportEdit
from trimtab.transcript.call_arguments import strings_in


class GatewayRows:
    """Rows in the shape of OpenAI's chat messages or of Anthropic's; ``session``: what the gateway
    calls the conversation, "" where it does not say."""

    def __init__(self, rows: list[Any], model: str, session: str) -> None:
        self._rows, self._places = rows, dict[int, Path]()
        """Where the contents are that may come back shorter, by their message.  Those of the model
        stay: it imitates what it finds as its own words."""
        self._messages: list[Any] = [{"role": "user", "content": session or _name_of(rows)}]
        self._called = set[str]()
        for number, row in enumerate(rows):
            role = row.get("role") if isinstance(row, dict) else None
            if role == "assistant":
                self._called |= set(_called_in(row))
                self._messages.append(row)
            elif role == "tool":
                self._add_result(row, row.get("tool_call_id"), row.get("name"), (number, "content"))
            elif role == "user" and any(map(_is_result, _parts_of(row))):
                self._add_parts(_parts_of(row), number)
            elif role in ("user", "system", "developer"):
                if role == "user":
                    self._places[len(self._messages)] = (number, "content")
                self._messages.append(row)
        self.request: dict[str, Any] = {"model": model, "messages": self._messages}
        """What is fitted: the rows behind a message of ours that names the conversation."""

    def shortened(
        self, messages: list[Any], edits: Iterable[ReportEdit]
    ) -> tuple[list[Any], list[str]]:
        """(the rows with the texts of the fitted ``messages``, the hashes that they name).

        A row is changed in nothing but its content, whose shape stays.  ``edits`` are those of the
        fit: only the handle of an edit becomes a hash, and only where it shortened.  A tool may
        write any other, which stays its words and gives nobody the original.
        """
        hashes, sets, handles = dict[str, None](), list[Set](), _handles_by_message(edits)
        for place, path in self._places.items():
            old, new = self._messages[place].get("content"), messages[place].get("content")
            if old == new or type(old) is not type(new):
                continue
            own = {one: hash_of(one) for one in handles.get(place, ()) if hash_of(one)}
            found = (one for _, text in strings_in(new) for one in marked(text))
            hashes |= {own[one]: None for one in found if one in own}
            names = {handle: f"hash={digits}" for handle, digits in own.items()}
            sets.append(Set(path, _with_names(new, names)))
        return apply(self._rows, sets), list(hashes)

    def _add_result(self, row: dict[str, Any], id: Any, name: Any, path: Path) -> None:
        """A message with a result, behind its call."""
        if id and isinstance(id, str):
            if id not in self._called:
                self._messages.append(_call_for(name, id))
            self._called.discard(id)
        self._places[len(self._messages)] = path
        self._messages.append(row)

    def _add_parts(self, parts: list[Any], number: int) -> None:
        """A message for each part of a row with results; what is none of them is only counted."""
        for index, part in enumerate(parts):
            if _is_result(part):
                id, content = part["tool_use_id"], part.get("content")
                row = {"role": "tool", "tool_call_id": id, "content": content}
                self._add_result(row, id, None, (number, "content", index, "content"))
            else:
                self._messages.append({"role": "user", "content": [part]})


def _name_of(rows: list[Any]) -> str:
    """A name by the first result, which stays the first, or else by the first row."""
    dicts = [row for row in rows if isinstance(row, dict)]
    first = next((row for row in dicts if row.get("role") == "tool"), dicts[0] if dicts else {})
    return _digest(str(first.get("tool_call_id")), str(first.get("content")), size=12)


def _digest(*parts: str, size: int) -> str:
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=size).hexdigest()


def _parts_of(row: dict[str, Any]) -> list[Any]:
    content = row.get("content")
    return content if isinstance(content, list) else []


def _is_result(part: Any) -> bool:
    """Whether this is a result as Anthropic writes it, with the id of its call."""
    if not isinstance(part, dict) or part.get("type") != "tool_result":
        return False
    return isinstance(part.get("tool_use_id"), str)


def _called_in(row: dict[str, Any]) -> Iterator[str]:
    """The ids of a model's calls, as OpenAI or Anthropic writes them."""
    calls = row.get("tool_calls")
    for one in [*(calls if isinstance(calls, list) else ()), *_parts_of(row)]:
        if isinstance(one, dict) and isinstance(one.get("id"), str):
            yield one["id"]


def _call_for(name: Any, id: str) -> dict[str, Any]:
    """A call for a result.  Its arguments are its own, so that it repeats no other call, and short:
    they count as what the gateway withholds of the real one."""
    own = _digest(id, size=3)
    function = {"name": name if isinstance(name, str) else "tool", "arguments": f'{{"id":"{own}"}}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": id, "type": "function", "function": function}],
    }


def _handles_by_message(edits: Iterable[ReportEdit]) -> dict[int, list[str]]:
    handles = dict[int, list[str]]()
    for edit in edits:
        for _, message, *_ in edit.paths:
            if isinstance(message, int):
                handles.setdefault(message, []).append(edit.handle)
    return handles


def _with_names(content: Any, names: dict[str, str]) -> Any:
    """The content with these names for the markers of handles, as gateways look for them."""
    if isinstance(content, str):
        return with_markers(content, names)
    if isinstance(content, list):
        return [_with_names(one, names) for one in content]
    if isinstance(content, dict):
        return {key: _with_names(one, names) for key, one in content.items()}
    return content
