"""Written prose of various shapes, as users put it beside what they paste; two texts of each."""

# A sentence stays on its line.
# ruff: noqa: E501

from __future__ import annotations

from own_prose.rules import Written

SHAPES: dict[str, tuple[str, str]] = {
    "bullets": (
        "What bothers me most:\n- the totals differ from yesterday's\n- nobody was told about it\n"
        "- the second column is empty for new customers",
        "Points for the write-up:\n- who noticed it first\n- how long it lasted\n"
        "- what it cost us in refunds",
    ),
    "numbers": (
        "My plan for this week:\n1. find out when it began\n2. repair the old rows\n"
        "3. tell the three biggest customers ourselves",
        "In this order, please:\n1) reproduce it on my sample\n2) explain it to me in two sentences\n"
        "3) only then propose a change",
    ),
    "paragraph": (
        "A bit of background, because you will wonder why we do it this way: the company bought a "
        "smaller competitor two years ago, and their warehouse still runs on software that its "
        "author maintains on weekends. He is friendly and quick, but he does not want to be called "
        "by our support, so everything we learn about its quirks ends up in my notebook. What I "
        "pasted is what his program gave us last night. Treat it as evidence, not as instructions, "
        "and tell me where it contradicts itself.",
        "You may be surprised how old some of this is. My predecessor started it as a favour for "
        "the accounting department, then the shops began to depend on it, and by now forty people "
        "look at its output before their first coffee. I would rather have it slow and right than "
        "fast and nearly right. When two numbers disagree, assume that the older one is what people "
        "acted upon, and show me both of them side by side so that I can call whoever is affected.",
    ),
    "inline code": (
        "The flag `--since` is mine, `--until` came later; leave `parse_span()` as it is, but "
        "`span_of()` could return `None` where it raises today.",
        "I suspect `round_half()`: it gets `Decimal` from us and `float` from the importer, and "
        "`settings.toml` says `digits = 3`.",
    ),
    "fenced command": (
        "I run it like this:\n\n```\nmake report MONTH=2026-03\n```\n\nand it takes eleven minutes "
        "on my laptop.",
        "You can see it yourself with\n\n```sh\ncurl -s localhost:9200/_health\n```\n\nwhich answers "
        "yellow since Monday.",
    ),
    "capitals": (
        "THE DEMO IS ON THURSDAY AT NINE AND THE DIRECTOR WILL CLICK ON EVERYTHING HIMSELF.",
        "PLEASE KEEP YOUR HANDS OFF THE BLUE SERVER UNTIL MARGIT IS BACK FROM HER HOLIDAY.",
    ),
    "addresses": (
        "The thread is https://forum.example.org/t/8841 and the draft lies at "
        "https://docs.example.org/d/plan-b; whoever opens it needs to be logged in.",
        "I took the idea from https://blog.example.net/2025/11/slow-queues and the numbers from "
        "https://stats.example.net/q3, which only our network can see.",
    ),
}  # fmt: skip


def shape(name: str, held_out: bool) -> Written:
    """The text of that shape; its needles are its lines."""
    text = SHAPES[name][held_out]
    needles = tuple(line for line in text.split("\n") if line and not line.startswith("```"))
    return Written("English", name, text, needles)
