"""One tool loop in each framework, as its documentation writes it, with trimtab in the one line.

    python drivers.py NAME URL [stream]

Runs in the framework's own environment and prints what the agent said last.  ``URL`` is a strict
provider (or a proxy in front of it) whose script calls ``read_file`` twenty times.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

URL = ""
STREAMS = False
LINES = "\n".join(f"line {number}: value {number * 7919}" for number in range(150))
TASK = "Read every file. Never delete one."


def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: The file to read.
    """
    return f"{path}\n{LINES}"


def openai_client(asynchronous: bool = False) -> Any:
    import openai

    import trimtab

    kind = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    return trimtab.wrap(kind(api_key="k", base_url=f"{URL}/v1", max_retries=0))


def pydantic_ai() -> str:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(openai_client=openai_client(True))
    agent = Agent(OpenAIChatModel("gpt-5.1", provider=provider), tools=[read_file])
    if STREAMS:

        async def streamed() -> str:
            async with agent.run_stream(TASK) as run:
                return str(await run.get_output())

        return asyncio.run(streamed())
    return str(agent.run_sync(TASK).output)


def openai_agents() -> str:
    from agents import (
        Agent,
        Runner,
        function_tool,
        set_default_openai_api,
        set_default_openai_client,
        set_tracing_disabled,
    )

    set_default_openai_client(openai_client(True), use_for_tracing=False)
    set_default_openai_api("chat_completions")
    set_tracing_disabled(True)
    agent = Agent(name="reader", model="gpt-5.1", tools=[function_tool(read_file)])
    if STREAMS:

        async def streamed() -> str:
            run = Runner.run_streamed(agent, TASK, max_turns=50)
            async for _ in run.stream_events():
                pass
            return str(run.final_output)

        return asyncio.run(streamed())
    return str(Runner.run_sync(agent, TASK, max_turns=50).final_output)


def strands() -> str:
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client=openai_client(True), model_id="gpt-5.1")
    return str(Agent(model=model, tools=[tool(read_file)], callback_handler=None)(TASK)).strip()


def google_adk_plugin() -> str:
    import trimtab

    return google_adk([trimtab.clients.adk_plugin(window=8_000)])


def google_adk(plugins: Any = None) -> str:
    from google import genai
    from google.adk.agents import Agent
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.models import Gemini
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    import trimtab

    options = types.HttpOptions(base_url=URL)
    kind = genai.Client if plugins else trimtab.wrap(genai.Client)
    client = kind(api_key="k", http_options=options)
    model = Gemini(model="gemini-2.5-pro", client=client)
    agent = Agent(name="reader", model=model, tools=[read_file])

    async def run() -> str:
        runner = InMemoryRunner(agent=agent, app_name="app", plugins=plugins)
        await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
        message = types.Content(role="user", parts=[types.Part(text=TASK)])
        mode = StreamingMode.SSE if STREAMS else StreamingMode.NONE
        said = ""
        async for event in runner.run_async(
            user_id="u", session_id="s", new_message=message,
            run_config=RunConfig(streaming_mode=mode),
        ):  # fmt: skip
            if event.is_final_response() and event.content and event.content.parts:
                said = event.content.parts[0].text or said
        return said

    return asyncio.run(run())


def llama_index() -> str:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai import OpenAI

    llm = OpenAI(
        model="gpt-4.1", api_key="k", api_base=f"{URL}/v1", openai_client=openai_client(),
        async_openai_client=openai_client(True), max_retries=0,
    )  # fmt: skip
    agent = FunctionAgent(tools=[read_file], llm=llm, streaming=STREAMS)

    async def run() -> str:
        return str(await agent.run(TASK, max_iterations=60))

    return asyncio.run(run())


def smolagents() -> str:
    from smolagents import OpenAIModel, ToolCallingAgent, tool

    import trimtab

    model = OpenAIModel(model_id="gpt-5.1", api_base=f"{URL}/v1", api_key="k")
    model.client = trimtab.wrap(model.client)
    agent = ToolCallingAgent(
        tools=[tool(read_file)], model=model, max_steps=40, verbosity_level=0,
        stream_outputs=STREAMS,
    )  # fmt: skip
    return str(agent.run(TASK))


def agent_framework() -> str:
    from agent_framework.openai import OpenAIChatCompletionClient

    return _framework_agent(
        OpenAIChatCompletionClient(model="gpt-5.1", async_client=openai_client(True))
    )


def agent_framework_chained() -> str:
    from agent_framework.openai import OpenAIChatClient

    return _framework_agent(OpenAIChatClient(model="gpt-5.1", async_client=openai_client(True)))


def _framework_agent(client: Any) -> str:
    from agent_framework import Agent

    agent = Agent(client=client, tools=[read_file])

    async def run() -> str:
        if not STREAMS:
            return str(await agent.run(TASK))
        said = [str(update) async for update in agent.run(TASK, stream=True) if str(update)]
        return said[-1]  # of Responses it shows each text twice, in pieces and whole

    return asyncio.run(run())


def agno() -> str:
    from agno.models.openai import OpenAIChat

    return _agno_agent(OpenAIChat(id="gpt-5.1", client=openai_client()))


def agno_chained() -> str:
    from agno.models.openai import OpenAIResponses

    return _agno_agent(OpenAIResponses(id="gpt-5.1", client=openai_client()))


def _agno_agent(model: Any) -> str:
    from agno.agent import Agent

    agent = Agent(model=model, tools=[read_file])
    if STREAMS:
        return "".join(str(e.content or "") for e in agent.run(TASK, stream=True))
    return str(agent.run(TASK).content)


def haystack() -> str:
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function
    from haystack.utils import Secret

    import trimtab

    generator = OpenAIChatGenerator(
        model="gpt-5.1", api_key=Secret.from_token("k"), api_base_url=f"{URL}/v1", max_retries=0,
        streaming_callback=(lambda chunk: None) if STREAMS else None,
    )  # fmt: skip
    agent = Agent(
        chat_generator=generator, tools=[create_tool_from_function(read_file)], max_agent_steps=60
    )
    agent.warm_up()
    generator.client = trimtab.wrap(generator.client)
    return str(agent.run(messages=[ChatMessage.from_user(TASK)])["last_message"].text)


def _chat_model() -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model="gpt-5.1", api_key="k", base_url=f"{URL}/v1", max_retries=0, streaming=STREAMS
    )


def _last(result: Any) -> str:
    return str(result["messages"][-1].text)


def langchain() -> str:
    from langchain.agents import create_agent

    from trimtab.clients.langchain import TrimtabMiddleware

    agent = create_agent(_chat_model(), [read_file], middleware=[TrimtabMiddleware()])
    return _last(agent.invoke({"messages": [("user", TASK)]}, {"recursion_limit": 200}))


def deepagents() -> str:
    from deepagents import create_deep_agent

    from trimtab.clients.langchain import TrimtabMiddleware

    agent = create_deep_agent(
        model=_chat_model(), tools=[read_file], middleware=[TrimtabMiddleware()]
    )
    return _last(agent.invoke({"messages": [("user", TASK)]}, {"recursion_limit": 200}))


def crewai() -> str:
    from crewai import LLM, Agent
    from crewai.tools import tool

    llm = LLM(model="openai/gpt-4.1", base_url=f"{URL}/v1", api_key="k", stream=STREAMS)
    agent = Agent(
        role="reader", goal="read", backstory="reads", llm=llm, max_iter=50, verbose=False,
        tools=[tool("read_file")(read_file)],
    )  # fmt: skip
    return str(agent.kickoff(TASK).raw)


def dspy() -> str:
    import dspy as d

    lm = d.LM("openai/gpt-4.1", api_base=f"{URL}/v1", api_key="k", cache=False, num_retries=0)
    said = []
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for number in range(21):
        [answer] = lm(messages=messages)
        said.append(answer)
        messages.append({"role": "assistant", "content": f"Reading file {number}."})
        messages.append({"role": "user", "content": read_file(f"/{number}")})
    return "done" if said else ""


def autogen() -> str:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(model="gpt-4.1", base_url=f"{URL}/v1", api_key="k")
    agent = AssistantAgent(
        "reader", model_client=client, tools=[read_file], max_tool_iterations=50,
        reflect_on_tool_use=True, model_client_stream=STREAMS,
    )  # fmt: skip

    async def run() -> str:
        return str((await agent.run(task=TASK)).messages[-1].content)

    return asyncio.run(run())


def openhands() -> str:
    import tempfile

    from openhands.sdk import LLM, Agent, Conversation, Tool, get_logger
    from openhands.sdk.conversation import get_agent_final_response
    from openhands.sdk.tool import (
        Action,
        Observation,
        ToolDefinition,
        ToolExecutor,
        register_tool,
    )
    from pydantic import SecretStr

    class ReadAction(Action):
        path: str

    class ReadObservation(Observation):
        pass

    class ReadExecutor(ToolExecutor):
        def __call__(self, action: ReadAction, conversation: Any = None) -> ReadObservation:
            return ReadObservation.from_text(read_file(action.path))

    class ReadFileTool(ToolDefinition[ReadAction, ReadObservation]):
        @classmethod
        def create(cls, conv_state: Any = None) -> list[Any]:
            return [
                cls(
                    description="Read a file.", action_type=ReadAction,
                    observation_type=ReadObservation, executor=ReadExecutor(),
                )
            ]  # fmt: skip

    get_logger("openhands").setLevel("ERROR")
    register_tool("ReadFileTool", ReadFileTool)
    llm = LLM(
        model="openai/gpt-4.1", base_url=f"{URL}/v1", api_key=SecretStr("k"), usage_id="agent",
        num_retries=0, stream=STREAMS, max_output_tokens=1_000,
    )  # fmt: skip
    agent = Agent(
        llm=llm, tools=[Tool(name="ReadFileTool")], include_default_tools=[],
        system_prompt="You read files.",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        conversation = Conversation(
            agent=agent, workspace=folder, visualizer=None,
            token_callbacks=[lambda chunk: None] if STREAMS else None,
        )  # fmt: skip
        conversation.send_message(TASK)
        conversation.run()
        return get_agent_final_response(conversation.state.events)


def openai_agents_filter() -> str:
    import openai
    from agents import (
        Agent,
        RunConfig,
        Runner,
        function_tool,
        set_default_openai_client,
        set_tracing_disabled,
    )

    import trimtab

    plain = openai.AsyncOpenAI(api_key="k", base_url=f"{URL}/v1", max_retries=0)
    set_default_openai_client(plain, use_for_tracing=False)
    set_tracing_disabled(True)
    hook = trimtab.clients.call_model_input_filter(window=8_000)
    config = RunConfig(call_model_input_filter=hook)
    agent = Agent(name="reader", model="gpt-5.1", tools=[function_tool(read_file)])

    async def run() -> str:
        if not STREAMS:
            done = await Runner.run(agent, TASK, max_turns=50, run_config=config)
            return str(done.final_output)
        run = Runner.run_streamed(agent, TASK, max_turns=50, run_config=config)
        async for _ in run.stream_events():
            pass
        return str(run.final_output)

    return asyncio.run(run())


def claude_agent_sdk() -> str:
    from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool

    @tool("read_file", "Read a file.", {"path": str})
    async def read(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": read_file(given["path"])}]}

    options = ClaudeAgentOptions(
        env={"ANTHROPIC_BASE_URL": URL, "ANTHROPIC_API_KEY": "k", "ENABLE_TOOL_SEARCH": "false",
             "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
             "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "1000"},
        mcp_servers={"files": create_sdk_mcp_server("files", tools=[read])},
        allowed_tools=["mcp__files__read_file"], tools=[], system_prompt="You read files.",
        setting_sources=[], max_turns=60, include_partial_messages=STREAMS,
    )  # fmt: skip

    async def run() -> str:
        said = ""
        async for message in query(prompt=TASK, options=options):
            said = getattr(message, "result", None) or said
        return said

    return asyncio.run(run())


DRIVERS: dict[str, Callable[[], str]] = {
    driver.__name__: driver
    for driver in (
        *(pydantic_ai, openai_agents, strands, google_adk, llama_index, smolagents),
        *(
            agent_framework,
            agent_framework_chained,
            agno,
            agno_chained,
            haystack,
            langchain,
            deepagents,
            crewai,
            dspy,
            autogen,
            openhands,
            openai_agents_filter,
            google_adk_plugin,
            claude_agent_sdk,
        ),
    )
}

if __name__ == "__main__":
    URL, STREAMS = sys.argv[2], sys.argv[3:] == ["stream"]
    print(DRIVERS[sys.argv[1]]())
