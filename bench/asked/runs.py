"""What programs print while they run: logs, tests, coverage, changes."""

from __future__ import annotations

from asked.facts import Content, Fact
from asked.words import Words


def application_log(words: Words, size: float = 1.0) -> Content:
    lines, facts, second = list[str](), list[Fact](), words.plain(0, 40_000)
    for _ in range(int(200 * size)):
        second += words.plain(0, 9)
        clock = f"{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
        service, verb, noun = words.of("service", "verb", "noun")
        key, value = words.new(lambda: f"req-{words.draw.getrandbits(32):08x}"), words.number()
        level = words.draw.choices(["INFO", "DEBUG", "WARN", "ERROR"], [80, 14, 4, 2])[0]
        text = words.pick([
            f"{verb} {noun} for {key} took {value} ms", f"[{key}] {noun} {verb}: {value} bytes",
            f"request={key} {verb}_{noun}={value} attempt={words.plain(1, 3)}",
        ])  # fmt: skip
        lines.append(f"{words.date()[:8]}07 {clock},{words.plain(100, 999)} {level:5} "
                     f"{service}.{noun}: {text}")  # fmt: skip
        facts.append(Fact(key, value, words.pick([
            f"what was logged for {key}", f"the figure that the log has for request {key}",
        ])))  # fmt: skip
    return Content("\n".join(lines), tuple(facts), "line", f"/var/log/{words.one('service')}.log")


def access_log(words: Words, size: float = 1.0) -> Content:
    lines, facts = list[str](), list[Fact]()
    for number in range(int(130 * size)):
        path, sent = f"/api/v2/{words.one('noun')}s/{words.number(101)}", words.number()
        status = words.draw.choices([200, 201, 304, 404, 500], [80, 8, 6, 5, 1])[0]
        address = ".".join(str(words.plain(1, 254)) for _ in range(4))
        agent = words.pick(
            ["curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64)", "python-requests/2.32"]
        )
        lines.append(
            f"{address} - - [07/Mar/2027:{6 + number // 60:02}:{number % 60:02}:"
            f"{words.plain(10, 59)} +0000] "
            f'"{words.pick(["GET", "GET", "POST", "PUT"])} {path} HTTP/1.1" {status} {sent} "-" '
            f'"{agent}"'
        )
        facts.append(Fact(path, sent, words.pick([
            f"how many bytes {path} was answered with", f"the size of the answer to {path}",
        ])))  # fmt: skip
    return Content("\n".join(lines), tuple(facts), "line", "/var/log/nginx/access.log")


def _tests(words: Words, many: int) -> list[str]:
    files = [f"tests/test_{words.one('noun')}_{words.one('verb')}.py" for _ in range(12)]
    names = [f"{words.pick(files)}::test_{words.identifier('snake')}" for _ in range(many)]
    return sorted(names)


def _pytest(words: Words, size: float) -> tuple[str, Fact, list[Fact]]:
    """A run with one failure, some skipped, and how long each took."""
    tests, ids, facts = _tests(words, int(150 * size)), list[str](), list[Fact]()
    failed = words.draw.randrange(len(tests))
    lines = ["=" * 30 + " test session starts " + "=" * 30, "platform linux -- Python 3.12.4",
             f"collected {len(tests)} items", ""]  # fmt: skip
    for number, test in enumerate(tests):
        ids.append(test.partition("::")[2])
        outcome = "FAILED" if number == failed else "PASSED"
        if number != failed and words.draw.random() < 0.06:
            reason = words.code()
            outcome = f"SKIPPED (waits for {reason})"
            facts.append(Fact(ids[-1], reason, f"why {ids[-1]} was skipped"))
        lines.append(f"{test} {outcome} [{100 * (number + 1) // len(tests):3}%]")
    wanted, got, noun = words.number(), words.number(), words.one("noun")
    lines += [
        "", "=" * 35 + " FAILURES " + "=" * 35, f"______ {ids[failed]} ______", "",
        f"    def {ids[failed]}():", f"        {noun} = build_{noun}({words.plain()})",
        f"        {noun}.{words.one('verb')}()", f">       assert {noun}.total == {wanted}",
        f"E       assert {got} == {wanted}", "",
        f"{tests[failed].partition('::')[0]}:{words.plain(10, 400)}: AssertionError",
        "=" * 32 + " slowest durations " + "=" * 32,
    ]  # fmt: skip
    for number in words.draw.sample(range(len(tests)), len(tests)):
        took = words.new(lambda: f"{words.plain(0, 9)}.{words.plain(100, 999)}s")
        lines.append(f"{took} call     {tests[number]}")
        facts.append(Fact(ids[number], took, f"how long {ids[number]} took"))
    skipped = sum(one.asked.startswith("why") for one in facts)
    lines += ["=" * 30 + " short test summary info " + "=" * 30,
              f"FAILED {tests[failed]} - AssertionError",
              f"{'=' * 20} 1 failed, {len(tests) - 1 - skipped} passed, {skipped} skipped in "
              f"{words.plain(10, 90)}.31s {'=' * 20}"]  # fmt: skip
    failure = Fact(ids[failed], got, f"what {ids[failed]} got instead")
    return "\n".join(lines), failure, facts


def pytest_failure(words: Words, size: float = 1.0) -> Content:
    text, failure, _ = _pytest(words, size)
    return Content(text, (failure,), "lines", "tests")


def pytest_named(words: Words, size: float = 1.0) -> Content:
    text, _, facts = _pytest(words, size)
    return Content(text, tuple(facts), "line", "tests")


def coverage(words: Words, size: float = 1.0) -> Content:
    rows, facts = list[str](), list[Fact]()
    for _ in range(int(180 * size)):
        path, lines = words.path(".py"), words.plain(20, 400)
        missed = words.plain(0, lines // 6)
        start = words.number(1_001, 9_999)
        share = 100 - 100 * missed // lines
        rows.append(f"{path:44}{lines:6}{missed:6}{share:5}%   {start}-{int(start) + missed}")
        facts.append(Fact(path, f"{start}-{int(start) + missed}", words.pick([
            f"which lines of {path} are not covered", f"what is missing in {path}",
        ])))  # fmt: skip
    rule, body = "-" * 76, "\n".join(rows)
    top = f"{'Name':44}{'Stmts':>6}{'Miss':>6}{'Cover':>6}   Missing\n{rule}"
    return Content(f"{top}\n{body}\n{rule}\nTOTAL {words.plain(9_000, 20_000)} 93%\n",
                   tuple(facts), "line", "coverage report -m")  # fmt: skip


def diff(words: Words, size: float = 1.0) -> Content:
    """Many files, one to three hunks in each; the fact is the new value in a file's first hunk."""
    parts, facts = list[str](), list[Fact]()
    for _ in range(int(45 * size)):
        path, old = words.path(words.pick([".py", ".rb", ".go"])), words.plain(100, 999)
        lines = [f"diff --git a/{path} b/{path}",
                 f"index {words.hexadecimal(8)}..{words.hexadecimal(8)} 100644",
                 f"--- a/{path}", f"+++ b/{path}"]  # fmt: skip
        for hunk in range(words.plain(1, 3)):
            value, name = words.number(), "_".join(words.of("quality", "noun"))
            at = words.plain(4, 300) + 400 * hunk
            where = words.identifier("snake")
            around = [f"     {words.one('noun')} = {words.one('verb')}({words.one('quality')})"
                      for _ in range(6)]  # fmt: skip
            lines += [f"@@ -{at},7 +{at},7 @@ def {where}", *around[:3],
                      f"-    {name} = {old}", f"+    {name} = {value}", *around[3:]]  # fmt: skip
            if hunk == 0:
                facts.append(Fact(path, value, f"the new value in {path}"))
            facts.append(Fact(where, value, f"what changed in {where}"))
        parts += lines
    return Content("\n".join(parts) + "\n", tuple(facts), "lines", "git diff main")


KINDS = {
    "application log": application_log, "access log": access_log,
    "pytest, the failure": pytest_failure, "pytest, a named test": pytest_named,
    "coverage": coverage, "diff": diff,
}  # fmt: skip
