"""Fourteen ways in which a history comes to harm before it reaches us, each under its name.

Each takes (draw, story), changes the story in place and tells whether it found something to
change.  Knows stories; knows no wire format and no rule.
"""

from __future__ import annotations

from collections.abc import Callable

from soak.story import HUGE, LONG, SHORT, Draw, Message, Part, Story


def _message(draw: Draw, story: Story) -> Message:
    message: Message = draw.pick(story)
    return message


def _holding(draw: Draw, story: Story, *kinds: str) -> tuple[Message, Part] | None:
    """Some part of one of these kinds, with its message."""
    for _ in range(12):
        message = draw.pick(story)
        found = [part for part in message.parts if part.kind in kinds]
        if found:
            return message, draw.pick(found)
    return None


def dropped(draw: Draw, story: Story) -> bool:
    """A message, the head of the history, or one part is gone."""
    if len(story) < 3:
        return False
    dice = draw.rng.random()
    if dice < 0.4:
        del story[int(draw.rng.random() * len(story))]
    elif dice < 0.5:
        del story[: 1 + int(draw.rng.random() * min(6, len(story) - 1))]
    else:
        message = _message(draw, story)
        if not message.parts:
            return False
        message.parts.remove(draw.pick(message.parts))
        if not message.parts:
            story.remove(message)
    return True


def swapped(draw: Draw, story: Story) -> bool:
    """Two neighbours stand in each other's place; messages, or parts of one."""
    if len(story) < 2:
        return False
    if draw.one_in(2):
        at = int(draw.rng.random() * (len(story) - 1))
        story[at], story[at + 1] = story[at + 1], story[at]
        return True
    message = next((m for m in (_message(draw, story) for _ in range(8)) if len(m.parts) > 1), None)
    if message is None:
        return False
    at = int(draw.rng.random() * (len(message.parts) - 1))
    parts = message.parts
    parts[at], parts[at + 1] = parts[at + 1], parts[at]
    return True


def duplicated(draw: Draw, story: Story) -> bool:
    """A message, a whole exchange or a part is there twice; behind the first, or further on."""
    at = int(draw.rng.random() * len(story))
    dice = draw.rng.random()
    if dice < 0.3:
        story.insert(at + 1, story[at].copy())
    elif dice < 0.5:
        story[at + 2 : at + 2] = [message.copy() for message in story[at : at + 2]]
    elif dice < 0.65:
        story.append(story[at].copy())
    elif story[at].parts:
        story[at].parts.append(draw.pick(story[at].parts).copy())
    else:
        return False
    return True


def enlarged(draw: Draw, story: Story) -> bool:
    """One text, result or argument is larger than all the rest."""
    found = _holding(draw, story, "text", "result", "call", "result", "thought")
    if found is None:
        return False
    part = found[1]
    text = draw.pick(HUGE if draw.one_in(4) else LONG)
    if part.kind == "call":
        part.arguments = {"path": "n.txt", "content": text}
    else:
        part.text, part.shape = text, "" if part.shape == "none" else part.shape
    return True


def reordered(draw: Draw, story: Story) -> bool:
    """A stretch is shuffled, or a message stands somewhere else."""
    if len(story) < 3:
        return False
    at = int(draw.rng.random() * len(story))
    if draw.one_in(2):
        stretch = story[at : at + 4]
        draw.rng.shuffle(stretch)
        story[at : at + 4] = stretch
    elif draw.one_in(2):
        story.insert(int(draw.rng.random() * len(story)), story.pop(at))
    else:
        draw.rng.shuffle(story[at].parts)
        return len(story[at].parts) > 1
    return True


def renamed(draw: Draw, story: Story) -> bool:
    """Call ids changed on one side or on both; odd, long, empty, or another call's."""
    found = _holding(draw, story, "call", "result")
    if found is None:
        return False
    old = found[1].id
    new = draw.pick(("call_new", "a b/ü", "x" * 80, "", "functions.read:0", old + "_x"))
    if draw.one_in(4):
        other = _holding(draw, story, "call")
        new = other[1].id if other else new
    ours = [part for message in story for part in message.parts if part.id == old]
    for part in ours if draw.one_in(2) else [found[1]]:
        if part.kind in ("call", "result"):
            part.id = new
    return True


def emptied(draw: Draw, story: Story) -> bool:
    """A text is blank, a result has no content, a message has no parts."""
    dice = draw.rng.random()
    if dice < 0.2:
        _message(draw, story).parts = []
        return True
    if dice < 0.4:
        blank = Part("text", draw.tag(), draw.pick(("", " \n")), draw.pick(("", "marked")))
        parts = _message(draw, story).parts
        parts.insert(int(draw.rng.random() * (len(parts) + 1)), blank)
        return True
    found = _holding(draw, story, "text", "result", "thought", "call")
    if found is None:
        return False
    part = found[1]
    part.text = draw.pick(("", "", "  \n"))
    if part.kind == "result":
        part.shape = draw.pick(("", "none", "empty", "error", "list"))
    elif part.kind == "call":
        part.arguments = draw.pick((None, "", {}, "{broken"))
    return True


def orphaned(draw: Draw, story: Story) -> bool:
    """A result whose call is nowhere, in a message of its own or among others' parts."""
    lost = Part("result", draw.tag(), draw.pick(SHORT), "", f"lost_{draw.tag()}", "bash")
    at = int(draw.rng.random() * (len(story) + 1))
    if draw.one_in(2) or at == len(story):
        story.insert(at, Message("user", [lost]))
    else:
        parts = story[at].parts
        parts.insert(int(draw.rng.random() * (len(parts) + 1)), lost)
    return True


def interrupted(draw: Draw, story: Story) -> bool:
    """Calls that were never answered, or not all of them; in the middle or at the very end."""
    turns = [
        number
        for number, message in enumerate(story[:-1])
        if any(part.kind == "call" for part in message.parts)
    ]
    if not turns:
        return False
    number = draw.pick(turns)
    dice = draw.rng.random()
    if dice < 0.25:
        del story[number + 1 :]
        return True
    answers = [part for part in story[number + 1].parts if part.kind == "result"]
    if not answers:
        return False
    gone = answers if dice < 0.6 else [draw.pick(answers)]
    left = [part for part in story[number + 1].parts if part not in gone]
    if left:
        story[number + 1].parts = left
    else:
        del story[number + 1]
    if dice > 0.9:
        words = Part("text", draw.tag(), "Wait, one more thing.")
        story.insert(number + 1, Message("user", [words]))
    return True


def split(draw: Draw, story: Story) -> bool:
    """One message is two; now and then somebody's words stand between."""
    large = [number for number, message in enumerate(story) if len(message.parts) > 1]
    if not large:
        return False
    number = draw.pick(large)
    parts = story[number].parts
    at = 1 + int(draw.rng.random() * (len(parts) - 1))
    halves = [Message(story[number].role, parts[:at]), Message(story[number].role, parts[at:])]
    if draw.one_in(3):
        words = Part("text", draw.tag(), draw.pick(SHORT))
        halves.insert(1, Message(draw.pick(("user", "assistant", "system")), [words]))
    story[number : number + 1] = halves
    return True


def merged(draw: Draw, story: Story) -> bool:
    """Two neighbours are one message."""
    if len(story) < 3:
        return False
    at = int(draw.rng.random() * (len(story) - 1))
    same = [n for n in range(len(story) - 1) if story[n].role == story[n + 1].role]
    if same and draw.one_in(2):
        at = draw.pick(same)
    story[at].parts = story[at].parts + story[at + 1].parts
    del story[at + 1]
    return True


def turned(draw: Draw, story: Story) -> bool:
    """A message speaks with another's voice."""
    message = _message(draw, story)
    others = [role for role in ("user", "assistant", "user", "system") if role != message.role]
    message.role = draw.pick(others)
    return True


def half_characters(draw: Draw, story: Story) -> bool:
    """A text, a result, an argument or an id holds half a character, or NUL."""
    found = _holding(draw, story, "text", "result", "call", "thought")
    if found is None:
        return False
    part, odd = found[1], draw.pick(("\ud83d", "\udc00", "\x00", "\udce9\udcff"))
    if part.kind == "call":
        part.arguments = {"path": f"n{odd}.txt", "content": draw.pick(SHORT) + odd}
    else:
        part.text = f"{part.text}{odd} and on"
    if draw.one_in(6) and part.kind == "call":
        part.id += odd
    return True


def cased(draw: Draw, story: Story) -> bool:
    """The id of a result is spelled in other case than its call's."""
    found = _holding(draw, story, "result")
    if found is None or found[1].id.swapcase() == found[1].id:
        return False
    found[1].id = draw.pick((found[1].id.swapcase(), found[1].id.upper()))
    return True


MUTATIONS: dict[str, Callable[[Draw, Story], bool]] = {
    "dropped": dropped,
    "swapped": swapped,
    "duplicated": duplicated,
    "enlarged": enlarged,
    "reordered": reordered,
    "re-id'd": renamed,
    "emptied": emptied,
    "orphaned": orphaned,
    "interrupted": interrupted,
    "split": split,
    "merged": merged,
    "role-changed": turned,
    "half characters": half_characters,
    "cased": cased,
}
NAMES = tuple(MUTATIONS)
