"""Reads a table back into the JSON it stands for, from the text alone.

Knows the few rules that stand in the file of the reducer and in the note above each table; does
not import the library.  Numbers are ``("number", spelling)``, objects ``("object", pairs)``.
"""

from __future__ import annotations

import json
import re
from typing import Any

NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity")
DECODER = json.JSONDecoder(
    parse_int=lambda text: ("number", text),
    parse_float=lambda text: ("number", text),
    parse_constant=lambda text: ("number", text),
    object_pairs_hook=lambda pairs: ("object", pairs),
)
GONE = object()


def spelled(text: str) -> Any:
    """A JSON text as the tree that tells spellings of numbers and equal keys."""
    return DECODER.decode(text)


def decoded(text: str) -> Any:
    """The JSON value that a text with tables stands for."""
    note, *lines = text.split("\n")
    assert re.fullmatch(r"\[JSON (lines )?as table: .*\]", note)
    skeleton = "<table 1>" if lines[0] == "<table 1>" else lines.pop(0)
    tables: list[Any] = []
    while lines:
        assert lines.pop(0) == f"<table {len(tables) + 1}>"
        end = next((n for n, line in enumerate(lines) if line.startswith("<table ")), len(lines))
        tables.append(records(lines[0], lines[1:end]))
        del lines[:end]
    # A table's name stands outside of strings, where no JSON has a "<".
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', skeleton)
    pieces[::2] = [re.sub(r"<table (\d+)>", r'{"<table>":\1}', piece) for piece in pieces[::2]]
    return _filled(spelled("".join(pieces)), tables)


def _filled(tree: Any, tables: list[Any]) -> Any:
    if isinstance(tree, list):
        return [_filled(item, tables) for item in tree]
    if isinstance(tree, tuple) and tree[0] == "object":
        if [key for key, _ in tree[1]] == ["<table>"] and tree[1][0][1][0] == "number":
            return tables[int(tree[1][0][1][1]) - 1]
        return ("object", [(key, _filled(value, tables)) for key, value in tree[1]])
    return tree


def records(header: str, rows: list[str]) -> list[Any]:
    """The objects of one table."""
    columns = [column(text) for text in header.split("\t")]
    return [record(columns, row) for row in rows]


def column(text: str) -> tuple[list[str], str, Any]:
    """(keys, how its cells are read, with what)."""
    keys, rest = path(text)
    if rest in ("", "[]"):
        return keys, "list" if rest else "cell", None
    assert rest[0] == "="
    if rest[1] != '"':
        return keys, "constant", spelled(rest[1:])
    before, end = json.decoder.scanstring(rest, 2)
    if end == len(rest):
        return keys, "constant", before
    if rest[end:] == "+*":
        return keys, "prefix", before
    other, rest = path(rest[end + 1 :])
    after = json.loads(rest[1:]) if rest else ""
    return keys, "derived", (before, other, after)


def path(text: str) -> tuple[list[str], str]:
    """The keys at the beginning, and what follows them."""
    keys: list[str] = []
    while True:
        if text[0] == '"':
            key, end = json.decoder.scanstring(text, 1)
        else:
            found = re.match(r"[\w-]+", text)
            assert found is not None
            key, end = found[0], found.end()
        keys.append(key)
        if text[end : end + 1] != ".":
            return keys, text[end:]
        text = text[end + 1 :]


def value(text: str) -> Any:
    """What one cell says."""
    if text[0] in '[{"' or text in ("true", "false", "null") or NUMBER.fullmatch(text):
        return spelled(text)
    return text


def record(columns: list[tuple[list[str], str, Any]], row: str) -> Any:
    """One object."""
    if row[0] == "{" and "\t" not in row:
        return spelled(row)
    cells = iter(row.split("\t"))
    found: list[tuple[list[str], str, Any]] = []
    for keys, kind, given in columns:
        one = given
        if kind not in ("constant", "derived"):
            text = next(cells, "")
            if not text:
                continue
            if kind == "list":
                one = spelled(text) if text[0] == "[" else text.split(",")
            elif kind == "prefix":
                one = given + (spelled(text) if text[0] == '"' else text)
            else:
                one = value(text)
        found.append((keys, kind, one))
    assert next(cells, None) is None
    told = {tuple(keys): one for keys, _, one in found}
    whole: list[Any] = []
    for keys, kind, one in found:
        if kind == "derived":
            before, other, after = one
            one = before + told[tuple(other)] + after
        _put(whole, keys, one)
    return ("object", whole)


def _put(pairs: list[Any], keys: list[str], one: Any) -> None:
    for key in keys[:-1]:
        if not pairs or pairs[-1][0] != key:
            pairs.append((key, ("object", [])))
        pairs = pairs[-1][1][1]
    pairs.append((keys[-1], one))
