"""Writes pricing/models.txt: windows, output limits and prices of models, from LiteLLM's table.

    pip download --no-deps litellm && python scripts/model_table.py litellm-*.whl
    python scripts/model_table.py        from the litellm that is installed; or give a JSON file

Knows the keys of LiteLLM's ``model_prices_and_context_window`` and whose word counts where
providers disagree.  Does not know how the table is read (src/trimtab/pricing/models.py does).
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from trimtab.pricing.models import plain_name, undated  # noqa: E402

OUT = ROOT / "src" / "trimtab" / "pricing" / "models.txt"
SOURCE = "litellm/model_prices_and_context_window_backup.json"
MODES = ("chat", "responses", "completion")

MAKERS = {
    "openai", "anthropic", "gemini", "mistral", "xai", "deepseek", "cohere", "cohere_chat",
    "moonshot", "zai", "minimax", "dashscope", "meta_llama", "amazon_nova", "ai21", "tencent",
    "volcengine", "xiaomi_mimo", "perplexity", "codestral", "inception",
}  # fmt: skip
CLOUDS = ("bedrock", "vertex_ai", "azure", "chatgpt", "github_copilot")
HOSTS = {
    "azure", "azure_ai", "bedrock", "vertex_ai", "groq", "together_ai", "fireworks_ai", "deepinfra",
    "openrouter", "cerebras", "github_copilot", "chatgpt", "databricks", "novita", "sambanova",
    "nebius", "snowflake", "cloudflare", "vercel_ai_gateway", "watsonx", "oci",
}  # fmt: skip
"""Hosts whose own limits are kept in addition to the model provider's, as ``host/name``."""

APART = re.compile(r"^(gpt-([5-9]|\d\d)|gemini)")
"""Models whose input and output don't share one window."""

HEADER = """\
# Windows, output limits and prices of models; written by scripts/model_table.py from LiteLLM {version}
# (model_prices_and_context_window), whose notice follows.  A line: what holds | the models it holds for.
# input tokens, output tokens, s if both share one window or a if they are apart, price of a million
# input tokens in US dollars, then as multiples of it: output, cache read, cache write, cache write
# for an hour; the least cached prefix in tokens; from how many tokens on input is dearer, how much.
#
"""  # noqa: E501


def source(argument: str | None) -> tuple[Mapping[str, Any], str, str]:
    """(table, licence text, version) from a wheel, a JSON file or the installed package."""
    if argument and argument.endswith(".whl"):
        with zipfile.ZipFile(argument) as wheel:
            licence = next(n for n in wheel.namelist() if n.endswith("dist-info/licenses/LICENSE"))
            return (
                json.loads(wheel.read(SOURCE)),
                wheel.read(licence).decode(),
                Path(argument).name.split("-")[1],
            )
    if argument:
        return json.loads(Path(argument).read_text()), "MIT License, Berri AI", "of a file"
    from importlib import metadata

    found = importlib.util.find_spec("litellm")
    if found is None or found.origin is None:
        raise SystemExit("no litellm here: give its wheel (pip download --no-deps litellm)")
    table = json.loads((Path(found.origin).parents[1] / SOURCE).read_text())
    files = metadata.files("litellm") or []
    licence = next(f for f in files if f.name == "LICENSE" and "dist-info" in str(f))
    return table, licence.read_text(), metadata.version("litellm")


def rows(table: Mapping[str, Any]) -> Iterator[tuple[int, str, str, str]]:
    """(rank of the source, host, name, facts as text) of every chat model with a window."""
    for key, row in table.items():
        if row.get("mode") not in MODES or not row.get("max_input_tokens"):
            continue
        provider, name = str(row["litellm_provider"]), plain_name(key)
        host = key.partition("/")[0].lower() if "/" in key else ""
        maker = provider in MAKERS and key.count("/") <= 1
        cloud = provider.startswith(CLOUDS)
        regional = name != key.rpartition("/")[2].lower()
        rank = (0 if maker else 2 if cloud else 4) + regional
        yield rank, host, name, facts(name, row)


def facts(name: str, row: Mapping[str, Any]) -> str:
    """The facts about one model in the table's notation."""
    given, said = int(row["max_input_tokens"]), int(row.get("max_output_tokens") or 0)
    plain = float(row.get("input_cost_per_token") or 0)
    kind = "a" if APART.match(name) else "s"

    def times(key: str) -> str:
        cost = row.get(key)
        return f"{float(cost) / plain:.4g}" if plain and isinstance(cost, (int, float)) else "-"

    read = times("cache_read_input_token_cost")
    write = times("cache_creation_input_token_cost")
    tier = "-"
    for key in row:
        if found := re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key):
            tier = f"{found[1]}k×{times(key)}"
    shown = [
        str(given), str(said), kind, f"{plain * 1e6:.6g}",
        times("output_cost_per_token"), read, "-" if write == "0" else write,
        times("cache_creation_input_token_cost_above_1hr"),
        str(int(row.get("prompt_cache_min_tokens") or 0) or "-"), tier,
    ]  # fmt: skip
    return " ".join(shown)


def window(text: str) -> list[str]:
    """The limits among the facts, without prices."""
    return text.split()[:3]


def chosen(table: Mapping[str, Any]) -> dict[str, str]:
    """Name → facts: the model provider's own row first; of equal ranks, the smaller window."""
    best: dict[str, tuple[int, int, str]] = {}
    hosted: dict[str, tuple[int, int, str]] = {}
    apart = {text.split()[0] for _, _, _, text in rows(table) if text.split()[2] == "a"}
    for rank, host, name, text in rows(table):
        given, said, kind, *rest = text.split()
        if kind == "a" and (less := str(int(given) - int(said))) in apart:
            text = " ".join([less, said, kind, *rest])  # this row tells the whole window
        entry = (rank, int(text.split()[0]), text)
        for names, key in ((best, name), (hosted, f"{host}/{name}" if host in HOSTS else "")):
            if key and (key not in names or entry < names[key]):
                names[key] = entry
    found = {name: text for name, (_, _, text) in best.items()}
    for name in sorted(found):  # a dated name that says no more than the one without its date
        short = undated(name)
        if short != name and found.get(short, found[name]) == found[name]:
            found.setdefault(short, found[name])
            del found[name]
    for key, (_, _, text) in hosted.items():
        short = undated(key.partition("/")[2])
        own = found.get(key.partition("/")[2], found.get(short))
        if own is not None and window(own) != window(text):
            found[key] = text
    return found


def page(table: Mapping[str, Any], licence: str, version: str) -> str:
    """The whole file."""
    lines: dict[str, list[str]] = {}
    for name, text in sorted(chosen(table).items()):
        lines.setdefault(text, []).append(name)
    said = licence.partition("MIT License")
    notice = f"{said[1]}{said[2]}" if said[1] else licence
    top = [f"# {line}".rstrip() for line in notice.strip().splitlines()]
    body = [f"{text} | {' '.join(names)}" for text, names in lines.items()]
    return HEADER.format(version=version) + "\n".join([*top, "", *body]) + "\n"


def main() -> int:
    """Write the table and print its size."""
    text = page(*source(sys.argv[1] if len(sys.argv) > 1 else None))
    OUT.write_text(text, encoding="utf-8")
    names = sum(len(line.split(" | ")[1].split()) for line in text.splitlines() if " | " in line)
    print(f"{OUT.relative_to(ROOT)}: {names:,} names, {len(text.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
