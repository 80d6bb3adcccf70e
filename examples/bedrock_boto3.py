"""boto3, Converse: the retry is signed anew by botocore itself.

    pip install 'trimtab[testing]' boto3
    python examples/bedrock_boto3.py

Runs without an account: the model is scripted, behind a provider that refuses what real ones
refuse.
"""

import boto3

from trimtab import clients
from trimtab_lab.testing import StrictProvider

WINDOW = 8_000
LOG = "\n".join(f"12:00:{n % 60:02} worker {n % 7} took job {n * 7919}" for n in range(1_200))


def main() -> None:
    """A log three times as long as the window, and one question about it."""
    with StrictProvider(["Nothing unusual."], window=WINDOW) as provider:
        client = boto3.client(
            "bedrock-runtime", endpoint_url=provider.url, region_name="us-east-1",
            aws_access_key_id="none", aws_secret_access_key="none",
        )  # fmt: skip
        clients.boto3(client)
        answer = client.converse(
            modelId="anthropic.claude-sonnet-4-5-v1:0",
            messages=[{"role": "user", "content": [{"text": f"What is unusual?\n{LOG}"}]}],
        )
        print(answer["output"]["message"]["content"][0]["text"])
        print([f"{r.tokens:,} tokens: {r.status}" for r in provider.requests])


if __name__ == "__main__":
    main()
