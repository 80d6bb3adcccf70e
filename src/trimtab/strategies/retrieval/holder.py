"""Where an article's fields stand in a JSON object: under the keys that search tools use.

Knows keys and objects.  Does not know texts, nor where in one anything stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.model import Path

CONTENT_KEYS = (
    "content", "text", "page_content", "pageContent", "body", "passage", "raw_content", "snippet",
    "chunk", "markdown", "document_content", "extract", "abstract", "summary", "description",
)  # fmt: skip
TITLE_KEYS = ("title", "name", "heading", "headline", "file", "filename")
URL_KEYS = ("url", "link", "source", "uri", "href", "source_url", "id", "_id", "path")
SCORE_KEYS = ("score", "_score", "relevance_score", "relevance", "similarity", "rerank_score")
DISTANCE_KEYS = ("distance", "rank")
METADATA, COMPRESSED = "metadata", "compressed"


@dataclass(frozen=True)
class Holder:
    """Where an article's fields stand: in the item itself or in one object within it."""

    item: Path
    inner: Path
    key: str
    fields: Mapping[str, Any]
    title: str
    url: str

    def places(self) -> list[Path]:
        """What has to be found in the text."""
        base = (*self.item, *self.inner)
        return [(*base, self.key), (*base, METADATA, COMPRESSED), (*base, COMPRESSED)]


def holder_of(item: Mapping[str, Any], path: Path = ()) -> Holder | None:
    """Where the fields of an item at ``path`` stand; None where it is no article."""
    for inner, fields in (((), item), *(((k,), v) for k, v in item.items() if type(v) is dict)):
        texts = {key: fields[key] for key in CONTENT_KEYS if isinstance(fields.get(key), str)}
        if texts and inner != (METADATA,):
            key = max(texts, key=lambda key: len(texts[key]))
            title, url = _named(item, fields, TITLE_KEYS), _named(item, fields, URL_KEYS)
            if title or url:
                return Holder(path, inner, key, fields, title, url)
    return None


def _named(item: Mapping[str, Any], fields: Mapping[str, Any], keys: Sequence[str]) -> str:
    more = fields.get(METADATA)
    boxes = [fields, more if isinstance(more, dict) else {}, item]
    for key in keys:
        for box in boxes:
            if isinstance(box.get(key), str) and box[key]:
                return str(box[key])
    return ""


def score(item: Mapping[str, Any], fields: Mapping[str, Any]) -> float | None:
    """How good the search tool held it to be, higher is better; None where it does not say."""
    more = fields.get(METADATA)
    for box in (fields, item, more if isinstance(more, dict) else {}):
        for keys, sign in ((SCORE_KEYS, 1), (DISTANCE_KEYS, -1)):
            for key in keys:
                number = box.get(key)
                if isinstance(number, (int, float)) and not isinstance(number, bool):
                    return sign * float(number) if abs(number) < 1e15 else None
    return None
