"""An agent of LangChain that reads more than its model's window holds, and finishes.

    pip install 'trimtab[langchain,testing]' langchain-openai
    python examples/langchain_agent.py

Runs without a key: the model is scripted, behind a provider that refuses what real ones refuse.
"""

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from trimtab.clients.langchain import TrimtabMiddleware
from trimtab_lab.testing import Answer, Call, StrictProvider

WINDOW = 8_000


@tool
def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"{path}:{n}: value_{n * 31} = {n}" for n in range(150))


def main() -> None:
    """Ten files of 2,100 tokens each through a window of 8,000."""
    script = [Answer("", [Call("read", {"path": f"src/f{n}.py"})]) for n in range(10)]
    with StrictProvider([*script, "All ten read."], window=WINDOW) as provider:
        model = ChatOpenAI(
            model="gpt-5.1", base_url=f"{provider.url}/v1", api_key="none", max_tokens=500
        )
        agent = create_agent(
            model, [read], middleware=[TrimtabMiddleware(window=WINDOW)],
            checkpointer=InMemorySaver(),
        )  # fmt: skip
        config = {"configurable": {"thread_id": "1"}}
        asked = {"messages": [{"role": "user", "content": "Read the ten files in src."}]}
        done = agent.invoke(asked, {**config, "recursion_limit": 100})
        sizes = [record.tokens for record in provider.requests]
        print(done["messages"][-1].text)
        print(f"{len(sizes)} requests, the largest {max(sizes):,} tokens of {WINDOW:,}")
        print("refused:", [r.refusal for r in provider.requests if r.refusal] or "none")


if __name__ == "__main__":
    main()
