"""The openai SDK: one line, and a tool loop goes on where its window ends.

    pip install 'trimtab[testing]' openai
    python examples/openai_sdk.py

Runs without a key: the model is scripted, behind a provider that refuses what real ones refuse.
"""

import json

from openai import OpenAI

import trimtab
from trimtab_lab.testing import Answer, Call, StrictProvider

WINDOW = 8_000
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]


def read(path: str) -> str:
    """A file of 2,400 tokens."""
    return "\n".join(f"{path}:{n}: value_{n * 31} = {n}" for n in range(150))


def main() -> None:
    """Ten files through a window that nobody told us."""
    script = [Answer("", [Call("read", {"path": f"src/f{n}.py"})]) for n in range(10)]
    with StrictProvider([*script, "All ten read."], window=WINDOW) as provider:
        client = trimtab.wrap(OpenAI(base_url=f"{provider.url}/v1", api_key="none"))
        messages = [{"role": "user", "content": "Read the ten files in src."}]
        while True:
            answer = client.chat.completions.create(model="gpt-5.1", messages=messages, tools=TOOLS)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                text = read(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        print(message.content)
        taken = [record.tokens for record in provider.requests if not record.refusal]
        refused = [record.refusal for record in provider.requests if record.refusal]
        print(f"{len(taken)} answers, the largest request {max(taken):,} tokens of {WINDOW:,}")
        print("refused, and sent again smaller:", refused)


if __name__ == "__main__":
    main()
