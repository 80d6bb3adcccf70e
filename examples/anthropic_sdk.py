"""The anthropic SDK, streaming: an overflow is answered before the caller sees a byte.

    pip install 'trimtab[testing]' anthropic
    python examples/anthropic_sdk.py

Runs without a key: the model is scripted, behind a provider that refuses what real ones refuse.
"""

from anthropic import Anthropic

import trimtab
from trimtab_lab.testing import StrictProvider

WINDOW = 8_000
LOG = "\n".join(f"12:00:{n % 60:02} worker {n % 7} took job {n * 7919}" for n in range(1_200))


def main() -> None:
    """A log three times as long as the window, and one question about it."""
    with StrictProvider(["Nothing unusual."], window=WINDOW) as provider:
        client = trimtab.wrap(Anthropic(base_url=provider.url, api_key="none"))
        with client.messages.stream(
            model="claude-opus-4-6",
            max_tokens=500,
            messages=[{"role": "user", "content": f"What is unusual?\n{LOG}"}],
        ) as stream:
            print("".join(stream.text_stream))
            print("x-trimtab:", stream.response.headers["x-trimtab"].rpartition("; ")[2])
        print([f"{r.tokens:,} tokens: {r.status}" for r in provider.requests])


if __name__ == "__main__":
    main()
