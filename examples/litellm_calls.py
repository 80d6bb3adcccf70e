"""LiteLLM: its functions wrapped, any provider behind them.

    pip install 'trimtab[testing,litellm]'
    python examples/litellm_calls.py

Runs without a key: the model is scripted, behind a provider that refuses what real ones refuse.
"""

import litellm

import trimtab
from trimtab_lab.testing import StrictProvider

WINDOW = 8_000
LOG = "\n".join(f"12:00:{n % 60:02} worker {n % 7} took job {n * 7919}" for n in range(1_200))


def main() -> None:
    """A log three times as long as the window, and one question about it."""
    completion = trimtab.wrap(litellm.completion)
    with StrictProvider(["Nothing unusual."], window=WINDOW) as provider:
        answer = completion(
            model="openai/gpt-5.1",
            messages=[{"role": "user", "content": f"What is unusual?\n{LOG}"}],
            api_base=f"{provider.url}/v1",
            api_key="none",
        )
        print(answer.choices[0].message.content)
        print([f"{r.tokens:,} tokens: {r.status}" for r in provider.requests])


if __name__ == "__main__":
    main()
