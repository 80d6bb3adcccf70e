"""Growing conversations through ``trimtab proxy --recall``: a scripted model calls our tools, and
its client sees none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from digests.chain import Chain
from digests.conversations import Found, converted
from digests.corpus import Record
from digests.kept import folder
from digests.proxied import asked, body_of, path_of, proxy, settled
from digests.scripted import Scripted
from digests.upstream import Upstream

SCENES: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "plain": (("--recall", "--notes"), False),
    "stream": (("--recall", "--notes"), True),
    "prune": (("--recall", "--prune", "--target", "0.3"), False),
}
"""By name: options of the proxy, and whether answers are streams."""
TURNS = 20


def scene(name: str, format: str, found: Sequence[Record], src: str) -> Found:
    """Conversations turn about through one proxy."""
    options, stream = SCENES[name]
    both = [(record, converted(record, format)) for record in found]
    talks = [(record, talk) for record, talk in both if talk is not None]
    models = [Scripted(talk, record.name, calls=True) for record, talk in talks]
    chains, heads = [Chain() for _ in talks], [Chain() for _ in talks]
    upstream = Upstream(format)
    try:
        with folder() as place, proxy(upstream.url, options, place, src) as address:
            for count in range(TURNS):
                for at, (_, talk) in enumerate(talks):
                    ends = talk.some_ends(TURNS)
                    if count >= len(ends):
                        continue
                    models[at].at(count, ends[count], stream=stream)
                    upstream.answer = models[at]
                    upstream.got.clear()
                    data = body_of(talk, ends[count], stream=stream, tools=True)
                    status, told, body = asked(address, path_of(format, stream=stream), data)
                    chains[at].add(*(part for row in upstream.got for part in row), status, body)
                    heads[at].add(told)
                    settled(address)
    finally:
        upstream.close()
    for (record, _), chain, head in zip(talks, chains, heads, strict=True):
        yield f"rounds/{name}/{format}/{record.name}", chain.told()
        yield f"rounds-header/{name}/{format}/{record.name}", head.told()
