"""A JSON search result: 200 rows of id, title, url, snippet, score, date, author and tags.

Pure functions of the seed.
"""

from __future__ import annotations

import random
import re
import uuid
from typing import Any

WORDS = re.findall(
    r"\w+",
    """
    time year people way day man thing woman life child world school state family student
    group country problem hand part place case week company system program question work
    government number night point home water room mother area money story fact month lot
    right study book eye job word business issue side kind head house service friend
    father power hour game line end member law car city community name president team
    minute idea body information back parent face others level office door health person
    art war history party result change morning reason research girl guy moment air
    teacher force education
    """,
)
TAGS = ("python", "cache", "http", "json", "agent", "search", "index", "ranking", "tokens")
AUTHORS = [f"{a} {b}" for a in ("Ada", "Max", "Lena", "Omar", "Mei") for b in ("Smith", "Chen")]


def rows(count: int = 200, seed: int = 1) -> list[dict[str, Any]]:
    """The rows."""
    pick = random.Random(seed)
    found = []
    for _ in range(count):
        title = " ".join(pick.choices(WORDS, k=8))
        found.append({
            "id": str(uuid.UUID(int=pick.getrandbits(128), version=4)),
            "title": title,
            "url": "https://docs.example.com/articles/" + "-".join(title.split()[:4]),
            "snippet": " ".join(pick.choices(WORDS, k=25)) + ".",
            "score": round(pick.random(), 4),
            "date": f"2024-{pick.randint(1, 12):02}-{pick.randint(1, 28):02}",
            "author": pick.choice(AUTHORS),
            "tags": pick.sample(TAGS, pick.randint(2, 4)),
        })  # fmt: skip
    return found
