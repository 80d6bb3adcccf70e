"""The situations: conversations of which it is known who wrote what and who pasted what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, product
from random import Random

from answerable.tokens import count, of_text

from own_prose.pastes import KINDS, Pasted, paste
from own_prose.rules import Written
from own_prose.shapes import SHAPES, shape
from own_prose.talk import Message, answer, body, question, steps, user

HALF, QUARTER = 0.5, 0.25
NEWEST, OLDER = "long message, the newest", "long message, an older one"
AFTER_PROSE = "paste after prose"
TARGET = 0.7
"""Share of the window that a cut may fill; asked for in each call."""
CHAT_RULES = 40
"""Of a conversation without tools."""
ANSWERS = 3
"""Tokens of the model for each of the user there."""
ROUNDS = 2
"""Of all combinations of a long message: as many meetings of a rule with one."""
PASTE = 1.5
"""Tokens of a paste for each of the user's prose before it.  With three of the model for each, the
target of half the window is 1.9: the prose fits, the paste fits, both do not."""
REQUESTS = (
    "Find out which of these came after the change of the tariff and give me their numbers.",
    "Could you work out what has to happen first and write me a plan for two people?",
)


@dataclass(frozen=True)
class Trial:
    """A conversation to be cut to ``share`` of its size.

    ``written``: what is judged of the user's words, oldest first.  ``tight``: these alone may be
    more than there is room for.  ``label``: what its row of a table is called.
    """

    situation: str
    share: float
    messages: list[Message]
    written: tuple[Written, ...]
    pasted: tuple[Pasted, ...] = ()
    label: str = ""
    tight: bool = False

    @property
    def window(self) -> int:
        """Tokens."""
        return int(count(body(self.messages)) * self.share)


def plain(text: str, kind: str) -> Written:
    """Words of the user that are no rule."""
    return Written("English", kind, text, tuple(text.split("\n")))


def agent(rules: Sequence[Written], seed: int) -> Iterator[Trial]:
    """A session with tools: each rule in one's first message and in another's middle one."""
    for number, first in enumerate(rules):
        middle = rules[(number + len(rules) // 2) % len(rules)]
        task = "Please repair the import of the meters, it stops after the first file."
        opening = user(task, first.text) if number % 2 else user(first.text, task)
        messages = [
            opening, *steps(f"{seed} {number} a", 5, 700),
            user("Thanks, that looks right.", middle.text), *steps(f"{seed} {number} b", 4, 700),
            user("Now run it once more and tell me what is left."),
            *steps(f"{seed} {number} c", 1, 150),
        ]  # fmt: skip
        yield Trial("agent, first message", HALF, messages, (first,), label="first")
        yield Trial("agent, middle message", HALF, messages, (middle,), label="middle")


def long_messages(rules: Sequence[Written], seed: int, held_out: bool) -> Iterator[Trial]:
    """One message with two pastes; the rule before, between or after them.  Rules and shapes come
    in random order: else each would meet one place and one kind of paste only."""
    random = Random(f"long {seed}")
    orders = [random.sample(rules, len(rules)) for _ in range(ROUNDS)]
    supply = cycle([rule for order in orders for rule in order])
    shapes = cycle([name for _ in range(ROUNDS * 18) for name in random.sample([*SHAPES], 7)])
    rounds = product(range(ROUNDS), KINDS, (False, True), range(3), (False, True))
    for number, (_, kind, fenced, place, again) in enumerate(rounds):
        rule, other = next(supply), shape(next(shapes), held_out)
        intro = plain("Here is what I got:", "intro")
        wish = plain(random.choice(REQUESTS), "request")
        one, two = (
            paste(kind, size, f"{seed} {number} {size}", fenced=fenced) for size in (1900, 2500)
        )
        gaps = [[other.text], [], [wish.text]]
        gaps[place].append(rule.text)
        first, between, last = ("\n\n".join(gap) for gap in gaps)
        pasted = f"{intro.text}\n{one.text}"  # nothing but a line break before what is pasted
        messages = [user(first, pasted, between, two.text, last), *steps(f"{seed} {number}", 2, 90)]
        if again:
            messages += [user("Go on, please."), *steps(f"{seed} {number} more", 1, 90)]
        written = sorted((rule, other, intro, wish), key=lambda w: _at(messages, w))
        for share in (HALF, QUARTER):
            yield Trial(OLDER if again else NEWEST, share, messages, tuple(written), (one, two),
                        label=("before", "between", "after")[place])  # fmt: skip


def _at(messages: Sequence[Message], written: Written) -> int:
    return str(messages[0]["content"]).index(written.needles[0])


def _turns(texts: Sequence[str], random: Random) -> list[Message]:
    """A message of the user for each text, and the model's answers."""
    messages = list[Message]()
    for number, text in enumerate(texts):
        said = [question(random), text]
        messages.append(user(*(said if number % 2 else reversed(said))))
        messages.append(answer(random, ANSWERS * of_text(messages[-1]["content"])))
    messages.append(user("Good. What comes next?"))
    return messages


def chats(rules: Sequence[Written], seed: int) -> Iterator[Trial]:
    """A conversation without tools, a rule in each message of the user."""
    for again in range(3):
        random = Random(f"chat {seed} {again}")
        order = random.sample(rules, len(rules))
        for start in range(0, len(order) - CHAT_RULES // 2, CHAT_RULES):
            own = tuple(order[start : start + CHAT_RULES])
            messages = _turns([rule.text for rule in own], random)
            yield Trial("chat", HALF, messages, own)
            yield Trial("chat", QUARTER, messages, own, tight=True)


def pastes_after_prose(rules: Sequence[Written], seed: int) -> Iterator[Trial]:
    """A chat, then a message with a paste that fits by itself, but not with all that was written.

    Who takes the paste for the user's prose keeps it, since it is newer, and drops older prose.
    """
    random = Random(f"after {seed}")
    for number, (kind, fenced, _) in enumerate(product(KINDS, (False, True), range(3))):
        own = random.sample(rules, 12)
        messages = _turns([rule.text for rule in own], random)[:-1]
        size = sum(of_text(m["content"]) for m in messages if m["role"] == "user")
        pasted = paste(kind, int(PASTE * size), f"{seed} {number} after", fenced=fenced)
        wish = plain(random.choice(REQUESTS), "request")
        messages += [user(pasted.text, wish.text), answer(random, 60), user("And after that?")]
        yield Trial(AFTER_PROSE, HALF, messages, (*own, wish), (pasted,))


def specifications(seed: int) -> Iterator[Trial]:
    """A paste of twice the window, the request at its beginning or its end."""
    for number, (kind, fenced, end) in enumerate(product(KINDS, (False, True), (False, True))):
        wish = plain(REQUESTS[number % 2], "request")
        pasted = paste(kind, 6000, f"{seed} {number} specification", fenced=fenced)
        parts = (pasted.text, wish.text) if end else (wish.text, pasted.text)
        for again in (False, True):
            messages = [user(*parts)]
            if again:
                messages += steps(f"{seed} {number} s", 2, 90)
            yield Trial("specification of twice the window", HALF, messages, (wish,), (pasted,),
                        label="at the end" if end else "at the beginning")  # fmt: skip


def corrections(rules: Sequence[Written], seed: int) -> Iterator[Trial]:
    """What a rule corrects, and later the correction: both are judged, oldest first."""
    pairs = [(plain(rule.corrects, "original"), rule) for rule in rules if rule.corrects]
    for again, share in product(range(4), (HALF, QUARTER, QUARTER / 2)):
        random = Random(f"pairs {seed} {again}")
        order = random.sample(pairs, len(pairs))
        far = [one for one, _ in order] + [other for _, other in order]
        near = [one for pair in order for one in pair]
        own = tuple(near if again % 2 else far)
        messages = _turns([one.text for one in own], random)
        label = "next message" if again % 2 else "half a chat later"
        yield Trial("corrections in a chat", share, messages, own, label=label, tight=share < HALF)
    for number, (pair, share) in enumerate(product(pairs, (HALF, QUARTER))):
        log = paste(list(KINDS)[number % len(KINDS)], 2600, f"{seed} {number} corrected")
        opening = user(pair[0].text, log.text, *([pair[1].text] if number % 4 < 2 else []))
        messages = [opening, *steps(f"{seed} {number} p", 4, 400)]
        if number % 4 >= 2:
            messages += [user(pair[1].text), *steps(f"{seed} {number} q", 3, 400)]
        messages += [user("Thanks, and now the rest."), *steps(f"{seed} {number} r", 1, 90)]
        yield Trial("corrections beside a paste", share, messages, pair, (log,),
                    label="same message" if number % 4 < 2 else "next message")  # fmt: skip


def all_trials(rules: Sequence[Written], held_out: bool) -> list[Trial]:
    """Every situation, with rules and seeds of one half."""
    seed = 2 if held_out else 1
    return [
        *agent(rules, seed), *long_messages(rules, seed, held_out), *chats(rules, seed),
        *pastes_after_prose(rules, seed), *specifications(seed), *corrections(rules, seed),
    ]  # fmt: skip
