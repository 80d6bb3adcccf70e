"""JSON, YAML, XML, prose and minified code: a fact is an object, a paragraph or a function."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from asked.facts import Content, Fact
from asked.words import Words


def _object(words: Words, key: str) -> tuple[dict[str, Any], str]:
    """An object with its key, and the value that is asked for."""
    quota = words.number()
    made: dict[str, Any] = {"id": words.plain(1, 9_999)}
    rest = [
        ("name", key), ("state", words.one("quality")), ("quota", int(quota)),
        ("owner", words.one("first").lower()), ("opened", words.date()),
        ("tags", words.of("noun", "quality")[: words.plain(1, 2)]),
        ("ok", words.draw.random() < 0.9),
    ]  # fmt: skip
    words.draw.shuffle(rest)
    return {**made, **dict(rest)}, quota


def _names(words: Words) -> str:
    """One that an object may have: a host, a service with its number, a person, a code."""
    kinds: list[Callable[[], str]] = [
        words.host, words.person, words.code, lambda: words.numbered("quality", "noun"),
    ]  # fmt: skip
    return words.draw.choice(kinds)()


def json_object(words: Words, size: float = 1.0) -> Content:
    """One big object: regions, in them services, in them what is asked for by its path."""
    tree, facts = dict[str, Any](), list[Fact]()
    for _ in range(int(14 * size) or 1):
        region = words.new(lambda: f"{words.one('town').lower()}-{words.plain(1, 9)}")
        pools = tree.setdefault(region, {"zone": words.one("quality"), "pools": {}})["pools"]
        for _ in range(words.plain(5, 10)):
            name = words.numbered("service", "noun")
            quota = words.number()
            pools[name] = {
                "limits": {"cpu": words.plain(), "memory": f"{words.plain()}Gi"},
                "quota": int(quota), "owner": words.one("first").lower(),
                "labels": {words.one("noun"): words.one("quality")},
            }  # fmt: skip
            facts.append(Fact(name, quota, words.pick([
                f"{region}.pools.{name}.quota", f"the quota of {name}",
            ])))  # fmt: skip
    text = json.dumps({"version": 3, "regions": tree}, indent=words.draw.choice([2, 2, 4, None]))
    return Content(text, tuple(facts), "chars", "config/pools.json")


def json_list(words: Words, size: float = 1.0) -> Content:
    made, facts = _objects(words, int(110 * size))
    text = json.dumps(made, indent=words.draw.choice([None, 2]))
    return Content(text, facts, "chars", f"/api/{words.one('noun')}s")


def ndjson(words: Words, size: float = 1.0) -> Content:
    made, facts = _objects(words, int(130 * size))
    return Content("\n".join(map(json.dumps, made)), facts, "line", words.path(".ndjson"))


def _objects(words: Words, many: int) -> tuple[list[dict[str, Any]], tuple[Fact, ...]]:
    made, facts = list[dict[str, Any]](), list[Fact]()
    for _ in range(many):
        name = _names(words)
        one, quota = _object(words, name)
        made.append(one)
        facts.append(Fact(name, quota, f"the quota of {name}"))
    return made, tuple(facts)


def yaml(words: Words, size: float = 1.0) -> Content:
    """Manifests; the fact is at most ten lines below the name."""
    parts, facts = list[str](), list[Fact]()
    for _ in range(int(60 * size)):
        service = words.one("service")
        name = f"{service}-{words.numbered('noun')}"
        port = words.number(1_024, 65_000)
        parts.append(
            f"apiVersion: apps/v1\nkind: {words.pick(['Deployment', 'StatefulSet'])}\nmetadata:\n"
            f"  name: {name}\n  labels:\n    app: {service}\n    tier: {words.one('quality')}\n"
            f"spec:\n  replicas: {words.plain(1, 9)}\n  template:\n    spec:\n"
            f"      containers:\n      - image: registry.example/{service}:1.{words.plain()}\n"
            f"        containerPort: {port}\n        resources:\n          limits:\n"
            f"            cpu: {words.plain(1, 8)}\n            memory: {words.plain()}Mi\n"
        )
        facts.append(Fact(name, port, words.pick([
            f"the port of {name}", f"which port {name} listens on",
        ])))  # fmt: skip
    return Content("---\n".join(parts), tuple(facts), "lines", "deploy/all.yaml")


def xml(words: Words, size: float = 1.0) -> Content:
    parts, facts = list[str](), list[Fact]()
    what = words.one("noun")
    for _ in range(int(90 * size)):
        name, weight = words.person(), words.number()
        parts.append(
            f'  <{what} id="{words.plain(1, 9_999)}" state="{words.one("quality")}">\n'
            f"    <contact>{name}</contact>\n    <town>{words.one('town')}</town>\n"
            f'    <weight unit="g">{weight}</weight>\n    <opened>{words.date()}</opened>\n'
            f"  </{what}>"
        )
        facts.append(Fact(name, weight, f"the weight of the {what} of {name}"))
    body = "\n".join(parts)
    return Content(f'<?xml version="1.0" encoding="UTF-8"?>\n<{what}s>\n{body}\n</{what}s>\n',
                   tuple(facts), "lines", f"data/{what}s.xml")  # fmt: skip


def prose(words: Words, size: float = 1.0) -> Content:
    """Paragraphs; the fact is one sentence in the midst of one."""
    parts, facts = list[str](), list[Fact]()
    for _ in range(int(70 * size)):
        name, sum_ = words.person(), words.number()
        sentence = words.pick([
            f"In {words.one('town')} {name} counted {sum_} {words.one('noun')}s.",
            f"{name} was promised {sum_} euros for the {words.one('noun')}.",
            f"The {words.one('noun')} that {name} signed names {sum_} as the limit.",
        ])  # fmt: skip
        said = [words.sentence() for _ in range(words.plain(2, 5))]
        said.insert(words.draw.randrange(len(said) + 1), sentence)
        parts.append(" ".join(said))
        facts.append(Fact(name, sum_, words.pick([
            f"the figure that belongs to {name}", f"what the minutes say about {name}",
        ])))  # fmt: skip
    return Content("\n\n".join(parts), tuple(facts), "chars", "minutes.txt")


MINIFIED = (
    "function $f(t,e){var n=t.$p||$k;return e?n.$q(e):n}",
    "$f=function(t){return t.map(function(t){return t.$p*$k}).filter($g)}",
    "t.prototype.$f=function(t,e,n){for(var r=0;r<t.length;r++)t[r].$p>$k&&e.$q(n)}",
    "$f=(t,e=$k)=>t&&t.$p?t.$p(e):$g(e)",
)


def minified(words: Words, size: float = 1.0) -> Content:
    parts, facts = list[str](), list[Fact]()
    for _ in range(int(170 * size)):
        name, value = words.identifier("camel"), words.number()
        slots = {"$f": name, "$k": value, "$p": words.one("noun"), "$q": words.one("verb"),
                 "$g": words.pick("abcdehi")}  # fmt: skip
        made = words.pick(MINIFIED)
        for slot, word in slots.items():
            made = made.replace(slot, word)
        parts.append(made)
        facts.append(Fact(name, value, f"the number in {name}"))
    text = f'!function(){{"use strict";{";".join(parts)}}}();'
    return Content(text, tuple(facts), "chars", "dist/app.min.js")


KINDS = {
    "json object": json_object, "json list": json_list, "ndjson": ndjson, "yaml": yaml,
    "xml": xml, "prose": prose, "minified js": minified,
}  # fmt: skip
