"""What is asked for by name, and which lines tell about it: a table of kinds of content."""

from __future__ import annotations

import json

import pytest
from blocks import CONFIG, block

from trimtab.reducers import Config, cut_to, digest_to, levels, records_to
from trimtab.reducers.content.base import BY_NAME
from trimtab.reducers.digest import weigh_lines, worth_of_lines
from trimtab.reducers.query_terms import NO_TERMS, QueryTerms, occurrences, places, terms_in
from trimtab.transcript.model import Block

QUESTION = "What about `wanted_77`?"


def result(text: str) -> Block:
    return block(text, tool="bash")


def config(question: str = QUESTION) -> Config:
    return Config(CONFIG.count, terms=terms_in([question]))


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("the town of Marta Kowalski", "Marta Kowalski"),
        ("how much is invoice 4711?", "4711"),
        ("see test_clock.py::test_zone[-03:30] please", "test_clock.py::test_zone[-03:30]"),
        ("which port has 'red fox'", "red fox"),
        ("the value of pools.audit-7.quota", "audit-7"),
        ("what does formatZone do", "formatZone"),
        ("is media-ap-02.prod up", "media-ap-02.prod"),
    ],
)  # fmt: skip
def test_a_question_has_names_of_many_kinds(question: str, name: str) -> None:
    assert name in terms_in([question]).names


def test_words_that_every_question_has_are_no_names() -> None:
    assert terms_in(["Please find the line where this is used."]) == NO_TERMS


def test_a_name_inside_a_longer_word_is_not_that_name() -> None:
    assert occurrences("ab_cd ab ab1 xab (ab)", "ab") == [6, 18]


def test_a_name_that_is_everywhere_raises_nothing() -> None:
    assert places("pool x\n" * 100, QueryTerms(("pool",))) == {}


def function(name: str, language: str) -> str:
    bodies = {
        "python": f"def {name}(a):\n    b = a + 1\n    c = b * 2\n    return c - VALUE\n",
        "javascript": f"function {name}(a) {{\n  const b = a + 1;\n  return b - VALUE;\n}}\n",
        "typescript": f"export function {name}(a: number): number {{\n  return a - VALUE;\n}}\n",
        "go": f"func {name}(a int) int {{\n\tb := a + 1\n\treturn b - VALUE\n}}\n",
        "rust": f"pub fn {name}(a: i64) -> i64 {{\n    let b = a;\n    b - VALUE\n}}\n",
        "java": f"    public int {name}(int a) {{\n        a = 2;\n        return VALUE;\n    }}\n",
        "c": f"int {name}(int a)\n{{\n    int b = a;\n    return b - VALUE;\n}}\n",
        "c++": f"int Box::{name}(int a) const {{\n    return a - VALUE;\n}}\n",
        "ruby": f"def {name}(a)\n  b = a + 1\n  b - VALUE\nend\n",
        "php": f"public function {name}(int $a): int\n{{\n    return $a - VALUE;\n}}\n",
    }
    return bodies[language]


LANGUAGES = ("python", "javascript", "typescript", "go", "rust", "java", "c", "c++", "ruby", "php")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_function_is_shown_with_its_body(language: str) -> None:
    source = "\n".join(
        function("wanted_77" if n == 40 else f"other_{n}", language).replace(
            "VALUE", "90210" if n == 40 else str(n)
        )
        for n in range(90)
    )
    shown = digest_to(result(source), config(), CONFIG.count(source) // 5)
    assert shown is not None
    assert "wanted_77" in shown.text
    assert "90210" in shown.text


def rows(line: str, header: str, count: int = 300) -> str:
    return header + "".join(
        line.format(name="wanted_77" if n == 150 else f"other_{n}",
                    value="90210" if n == 150 else n) + "\n"
        for n in range(count)
    )  # fmt: skip


TEXTS = {
    "csv": (rows("{name},town,{value}", "name,place,amount\n"), "name,place,amount"),
    "psql": (rows(" {name} | town | {value}", " name | place | amount\n------+-------+----\n"),
             " name | place | amount"),
    "markdown": (rows("| {name} | `town` | {value} |",
                      "# T\n\n| name | place | amount |\n|--|--|--|\n"),
                 "| name | place | amount |"),
    "html": (rows("<tr>\n  <td>{name}</td>\n  <td>{value}</td>\n</tr>",
                  "<table>\n<tr>\n  <th>Name</th>\n  <th>Amount</th>\n</tr>\n", ), "Amount"),
    "yaml": (rows("- name: {name}\n  kind: pool\n  size: {value}", "pools:\n"), "pools:"),
    "xml": (rows('  <pool id="{name}">\n    <size>{value}</size>\n  </pool>', "<pools>\n"),
            "<pools>"),
    "log": (rows("12:00:01 INFO job {name} took {value} ms", ""), ""),
    "diff": (rows("@@ -1,2 +1,2 @@ def {name}():\n     same\n-    old\n+    new = {value}",
                  "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n"), "+++ b/x.py"),
    "tests": (rows("____ {name} ____\n\n    def test():\n>       assert\nE       got {value}", ""),
              ""),
}  # fmt: skip


@pytest.mark.parametrize("kind", TEXTS)
def test_what_is_asked_for_is_shown_with_its_unit(kind: str) -> None:
    text, header = TEXTS[kind]
    shown = digest_to(result(text), config(), CONFIG.count(text) // 6)
    assert shown is not None
    assert "wanted_77" in shown.text
    assert "90210" in shown.text
    assert header in shown.text


@pytest.mark.parametrize("kind", TEXTS)
def test_asking_lowers_no_weight(kind: str) -> None:
    text = TEXTS[kind][0].replace("other_", "thing ")
    terms = terms_in([QUESTION])
    # Demotion for lack of room apart, which keeps the asked lines first.
    pairs = zip(worth_of_lines(text), worth_of_lines(text, "", terms), strict=True)
    assert all(after >= before for before, after in pairs if before < 100)


def test_an_asked_line_is_above_every_outcome() -> None:
    lines = [f"step {n} is quiet" for n in range(60)] + ["2 failed, 3 passed in 0.5s"]
    lines[30] = "step wanted_77 is quiet"
    weights = weigh_lines("\n".join(lines), "bash", terms_in([QUESTION])).weights
    assert weights[30] == max(weights) > BY_NAME


def test_a_long_line_shows_what_is_around_the_name() -> None:
    text = "".join(f"function f{n}(t){{return t*{n}}};" for n in range(900))
    text = text.replace("f450(t){return t*450}", "wanted_77(t){return t*90210}")
    shown = cut_to(result(text), config(), CONFIG.count(text) // 4)
    assert shown is not None
    assert "wanted_77(t){return t*90210}" in shown.text
    assert cut_to(result(text), CONFIG, CONFIG.count(text) // 4) is not None


def test_minified_code_is_offered_by_halves_before_it_is_told_by_its_size() -> None:
    text = "".join(f"function f{n}(t){{return t*{n}}};" for n in range(900))
    sizes = [
        CONFIG.count(offer.text) / CONFIG.count(text) for offer in levels(result(text), CONFIG)
    ]
    assert sizes[0] > 0.3


def test_an_object_of_a_list_is_kept() -> None:
    items = [{"id": n, "name": f"other_{n}", "tags": ["a", "b"], "size": n} for n in range(200)]
    items[90] = {"id": 90, "name": "wanted_77", "tags": ["c"], "size": 90210}
    text = json.dumps(items)
    shown = records_to(result(text), config(), CONFIG.count(text) // 6)
    assert shown is not None
    assert "wanted_77" in shown.text
    assert "90210" in shown.text


def test_a_key_of_a_big_object_is_kept_with_its_value() -> None:
    pools = {f"pool-{n}": {"limits": {"cpu": n}, "quota": n} for n in range(200)}
    pools["wanted-77"] = {"limits": {"cpu": 3}, "quota": 90210}
    pools |= {f"tail-{n}": {"limits": {"cpu": n}, "quota": n} for n in range(200)}
    text = json.dumps({"regions": {"north": {"pools": pools}}})
    about = config("regions.north.pools.wanted-77.quota")
    shown = records_to(result(text), about, CONFIG.count(text) // 6)
    assert shown is not None
    assert "wanted-77" in shown.text
    assert "90210" in shown.text


def test_a_digest_uses_its_budget_where_its_best_lines_have_fewer_tokens_than_others() -> None:
    def words(text: str) -> int:
        return len(text.split())

    lines = [f"/srv/data_{n}/file_{n}/name_{n}.txt" if n % 2 else "a b c d e f g h i j" * 2
             for n in range(400)]  # fmt: skip
    text = "\n".join(lines)
    shown = digest_to(result(text), Config(words), words(text) // 2)
    assert shown is not None
    assert words(shown.text) >= 0.85 * (words(text) // 2)


REQUEST = '10.0.0.{n} - - [27/Nov/2026:10:00:01] "GET /items/{n} HTTP/1.1" {code} {n}3'
ODD = {
    "500": [REQUEST.format(n=n, code=500 if n == 133 else 200) for n in range(300)],
    "mod_133.py": ["Name   Stmts   Miss   Cover   Missing"] + [
        f"src/mod_{n}.py   90   {n % 4}   {'21%   14-90' if n == 133 else '97%'}"
        for n in range(300)
    ],
    "Out of memory": [
        "kernel: Out of memory: process 12 (db)" if n == 133 else f"kernel: eth0 passed {n} on"
        for n in range(300)
    ],
}  # fmt: skip


@pytest.mark.parametrize("told", ODD)
def test_the_odd_one_of_many_rows_is_an_outcome(told: str) -> None:
    text = "\n".join(ODD[told])
    shown = digest_to(result(text), CONFIG, CONFIG.count(text) // 12)
    assert shown is not None
    assert f" {told}" in f" {shown.text}".replace("/", " ")


def test_rows_that_fail_as_often_as_not_are_no_exception() -> None:
    lines = [REQUEST.format(n=n, code=500 if n % 2 else 200) for n in range(300)]
    raised = [n for n, weight in enumerate(worth_of_lines("\n".join(lines))) if weight >= 500]
    assert raised == [1, 299]
