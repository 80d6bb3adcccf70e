"""A page of the dashboard, read without a browser: its tags and its text."""

from __future__ import annotations

from html.parser import HTMLParser


class Markup(HTMLParser):
    """Tags in order, attributes, and whether what is opened is closed."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.scripts = 0
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "script":
            self.scripts += 1
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
