"""Made-up input items of OpenAI Responses, with wounds.

Does not know the library under test.
"""

from __future__ import annotations

import copy
import random

from responses_cases import (
    CHUNK,
    CUSTOM,
    SHELL,
    Items,
    call,
    output,
    said,
    thought,
    user,
)


def mutated(random_: random.Random) -> Items:
    """A story of the six kinds of step, with up to five wounds."""
    items: Items = [user("Task. " * random_.randrange(1, 80))]
    for n in range(random_.randrange(4, 14)):
        makes = random_.choice(["function", "parallel", "shell", "custom", "text", "user"])
        if random_.random() < 0.5 and makes != "user":
            items.append(thought(random_.choice([None, f"rs_{n}"]) if n % 3 else f"rs_{n}"))
        named = {"id": f"fc_{n}"} if "id" in items[-1] else {}
        big = "line of output 42\n" * random_.choice([1, 10, 300])
        if makes == "function":
            items += [call(f"c{n}", **named), output(f"c{n}", big)]
        elif makes == "parallel":
            ids = [f"c{n}_{k}" for k in range(3)]
            items += [*(call(i) for i in ids), *(output(i, big) for i in ids)]
        elif makes == "shell":
            chunks = [{**CHUNK, "stdout": big}]
            items.append({**SHELL, "call_id": f"c{n}"})
            items.append(output(f"c{n}", chunks, type="shell_call_output"))
        elif makes == "custom":
            items.append({**CUSTOM, "call_id": f"c{n}", "input": big})
            items.append(output(f"c{n}", type="custom_tool_call_output"))
        else:
            items.append(said(big) if makes == "text" else user(big))
    for _ in range(random_.randrange(6)):
        place = random_.randrange(len(items))
        wound = random_.choice(["drop", "double", "swap", "null", "id", "move"])
        if wound == "drop" and len(items) > 1:
            del items[place]
        elif wound == "double":
            items.insert(random_.randrange(len(items)), copy.deepcopy(items[place]))
        elif wound == "swap":
            other = random_.randrange(len(items))
            items[place], items[other] = items[other], items[place]
        elif wound == "null":
            key = next((k for k in ("content", "output") if k in items[place]), "id")
            items[place] = {**items[place], key: None}
        elif wound == "id":
            name = random_.choice(["", "rs_1", "item-7", "x y", "z" * 90])
            items[place] = {**items[place], random_.choice(["id", "call_id"]): name}
        else:
            items.append(items.pop(place))
    return items
