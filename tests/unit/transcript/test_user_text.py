"""What a user wrote and what a user pasted, and the pieces of what was written."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trimtab.transcript.user_text import TextSpan, pieces_of, spans_of

RULE = "Keep the names as they are."
STAMP = "2026-03-04T10:00"

PASTES = {
    "log": "\n".join(f"{STAMP}:{n:02}Z ERROR field {n} is required" for n in range(30)),
    "clock log": "\n".join(f"[10:{n:02}] Mei: looking at it, we should ask" for n in range(30)),
    "traceback": "Traceback (most recent call last):\n" + "\n".join(
        f'  File "/srv/app/part{n}.py", line {n}, in run\n    return self.load(x, timeout={n})'
        for n in range(12)
    ) + "\nValueError: the name must not be empty",
    "java trace": "\n".join(f"    at org.example.Part{n}.run(Part{n}.java:{n})" for n in range(20)),
    "CSV": "id,name,state,day\n" + "\n".join(f"{n},Ada,open,2026-03-04" for n in range(40)),
    "JSON": json.dumps([{"id": n, "note": "should be checked"} for n in range(12)], indent=2),
    "JSON on one line": json.dumps([{"id": n, "note": "x"} for n in range(40)]),
    "code": "\n\n".join(
        f"def part_{n}(row: dict[str, int]) -> int:\n    return row['a'] + {n}" for n in range(12)
    ),
    "diff": "diff --git a/x.py b/x.py\n@@ -1,40 +1,40 @@\n" + "\n".join(
        f"-    old_{n} = {n}\n+    new_{n} = {n}" for n in range(20)
    ),
    "HTML": "\n".join(f'<p class="card">Thing {n} is here.</p>' for n in range(20)),
    "table": "| id | name |\n|---|---|\n" + "\n".join(f"| {n} | Ada Lovelace |" for n in range(30)),
    "fence": "```\n" + "some words of a page\n" * 30 + "```",
    "specification": "\n".join(
        f"{n}.{m} The part {n * m} must accept every thing of class {m} within {n} seconds."
        for n in range(1, 9) for m in range(1, 8)
    ),
    "document": "\n".join(
        f"## Chapter {n}\n\nThe part {n} keeps the thing and notes it. "
        f"{'It waits for a while. ' * 9}\n\n- one thing of {n}\n- another thing of {n}\n"
        for n in range(14)
    ).strip(),
    "mails": "\n".join(
        f"From: Mei <mei@example.org>\nTo: Olu <olu@example.net>\nSubject: Re: part {n}\n\n"
        f"Hi Olu,\n\nthe part {n} waits for you. {'It was here before. ' * 9}\n\n> Is it {n}?\n\n"
        "Best regards\nMei\n"
        for n in range(12)
    ).strip(),
}  # fmt: skip

PROSE = {
    "a sentence": RULE,
    "a path": "Please look at src/app/main.py and config/app.toml, they differ since v1.2.3.",
    "a command": "Run `pytest -q tests/unit` after each change, then `git diff --stat`.",
    "a list": "Do none of these:\n- touch the lock file\n- rename a column\n- push to main",
    "a numbered list": "1. Read the file.\n2. Fix the bug.\n3. Tell me what you did.",
    "a short fence": "Use this header:\n```\nX-Team: blue\n```",
    "a brief with headings": "# Goal\n\nA page that lists them.\n\n# Rules\n\n- no new packages\n",
    "Chinese": "请不要修改 config/app.toml 这个文件。变量名可以长一些。先写测试，再写代码！" * 20,
    "Thai": "โปรดอย่าแก้ไขไฟล์นี้และแจ้งให้ฉันทราบเมื่อเสร็จสิ้น " * 20,
    "Hindi": "कृपया इस फ़ाइल को न बदलें। पहले जाँच लिखें, फिर कोड। " * 20,
    "Arabic": "لا تغيّر هذا الملف، واكتب الاختبارات قبل الشيفرة. " * 20,
    "German": "Bitte ändere die Spalte nicht, sondern lege eine neue an. " * 20,
    "long": "I would like to know why the import stops after the first file. " * 60,
}


def written(text: str) -> str:
    return "".join(text[start:end] for start, end, kind in spans_of(text) if kind == "written")


@pytest.mark.parametrize("kind", PASTES)
def test_what_was_pasted_is_told_from_what_was_written_around_it(kind: str) -> None:
    paste = PASTES[kind]
    text = f"Here is what I got:\n{paste}\n\n{RULE}\n\n{paste}\n\nWhat is wrong with it?"
    own = written(text).split("\n")
    assert [row for row in own if row.strip()] == [
        "Here is what I got:", RULE, "What is wrong with it?"
    ]  # fmt: skip


@pytest.mark.parametrize("kind", PROSE)
def test_what_was_written_is_not_taken_for_pasted(kind: str) -> None:
    assert written(PROSE[kind]) == PROSE[kind]


def test_a_short_paste_counts_as_written() -> None:
    text = 'It says:\nValueError: no such name\n  File "a.py", line 3\nWhy?'
    assert written(text) == text


def test_what_a_client_adds_is_not_the_users() -> None:
    text = "Go on.\n<system-reminder>Never tell the user.</system-reminder>\nThanks."
    assert [kind for *_, kind in spans_of(text)] == ["written", "client", "written"]


def test_the_middle_of_a_text_that_nobody_can_have_typed_counts_as_pasted() -> None:
    page = "\n\n".join(
        f"Part {n} of the story. {'It goes on and on here. ' * 12}" for n in range(60)
    )
    text = f"Please sum this up.\n\n{page}\n\nIn ten lines, please."
    assert written(text) == "Please sum this up.\n\nIn ten lines, please."


LONG = "The import reads each file twice and takes the second answer for the first one. " * 4


@pytest.mark.parametrize(
    "piece",
    [
        "Delete the accounts after half a year,\nexcept those of people on leave, whom we\nkeep.",
        "Do none of these:\n- touch the lock file\n- rename a column",
        "Do none of these:\n\n- touch the lock file\n\n- rename a column",
        "Write all names in small letters, in each of the files and tables that there are. But not "
        "the names of the people who work here, whom we know well.",
        "所有变量名都用小写字母。但是类名除外。",
    ],
    ids=["wrapped", "list", "loose list", "exception", "exception in Chinese"],
)
def test_a_rule_is_one_piece(piece: str) -> None:
    text = f"{LONG}\n\n{piece}\n\n{LONG}"
    (span,) = spans_of(text)
    assert any(piece in text[start:end] for start, end in pieces_of(text, span))


def test_a_long_paragraph_has_a_piece_for_each_sentence() -> None:
    said = [
        f"Sentence {n} tells of the thing with the number {n * 7} in config/v1.{n}."
        for n in range(9)
    ]
    text = " ".join(said)
    pieces = pieces_of(text, TextSpan(0, len(text), "written"))
    assert [text[start:end].strip() for start, end in pieces] == said


PARTS = st.sampled_from(
    [*PASTES.values(), *PROSE.values(), "\n", "\n\n", " ", "```", "~~~\n", "> x"]
)


@given(st.lists(st.one_of(PARTS, st.text(max_size=40)), max_size=8).map("".join))
@example("<system-reminder></system-reminder>")
@example("\n" * 900)
def test_the_parts_and_the_pieces_give_the_text(text: str) -> None:
    spans = spans_of(text)
    assert "".join(text[start:end] for start, end, _ in spans) == text
    assert all(start < end for start, end, _ in spans)
    assert all(a.kind != b.kind for a, b in pairwise(spans))
    for span in spans:
        pieces = pieces_of(text, span)
        assert "".join(text[a:b] for a, b in pieces) == text[span.start : span.end]
