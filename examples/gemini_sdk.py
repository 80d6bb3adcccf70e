"""google-genai, async, with the limits known from the start: nothing is ever refused.

    pip install 'trimtab[testing]' google-genai
    python examples/gemini_sdk.py

Runs without a key: the model is scripted, behind a provider that refuses what real ones refuse.
"""

import asyncio

from google import genai
from google.genai import types

import trimtab
from trimtab_lab.testing import StrictProvider

WINDOW = 8_000
PAGES = "\n".join(f"Page {n}: the parcel number {n * 7919} left the depot." for n in range(900))


async def main() -> None:
    """A conversation of pages, cut where it says least."""
    with StrictProvider(["It left the depot."], window=WINDOW) as provider:
        options = types.HttpOptions(base_url=provider.url)
        guarded = trimtab.wrap(genai.Client, window=WINDOW)
        client = guarded(api_key="none", vertexai=False, http_options=options)
        answer = await client.aio.models.generate_content(
            model="gemini-3.5-pro", contents=f"Where is parcel 7919?\n{PAGES}"
        )
        print(answer.text)
        print([f"{r.tokens:,} tokens: {r.status}" for r in provider.requests])


if __name__ == "__main__":
    asyncio.run(main())
