"""Runs the ten-line reproductions that docs/why/peers.md names, each in its library's environment.

    python bench/peers/reproduce.py            make what is missing, run all, say what came out

Each file of bugs/ ends with what it printed on the day that the page names.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from run import PEERS, install, python_of, version

BUGS = Path(__file__).with_name("bugs")
ENVIRONMENTS = {
    "contextgc": "contextgc", "ctxfit": "ctxfit", "distil": "distil", "langchain": "langchain",
    "litellm": "litellm", "maf": "agent-framework", "pydantic": "pydantic-ai",
    "strands": "strands",
}  # fmt: skip
"""By the first word of a file's name."""


def expected(file: Path) -> str:
    """What its last line says."""
    return file.read_text(encoding="utf-8").rstrip().rpartition("# prints ")[2]


def main() -> int:
    """1 where something else came out: the library was mended, or changed."""
    changed = 0
    for file in sorted(BUGS.glob("*.py")):
        name = ENVIRONMENTS[file.stem.partition("_")[0]]
        peer = next(one for one in PEERS if one.environment == name)
        if failed := install(peer):
            print(f"{file.stem}: not run: {failed}")
            continue
        done = subprocess.run(
            [str(python_of(peer)), "-W", "ignore", str(file)], capture_output=True, text=True,
            check=False, env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        )  # fmt: skip
        said = (done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]])[-1]
        same = said.startswith(expected(file).removesuffix("..."))
        changed += not same
        verdict = "as on the page" if same else f"now prints {said!r}"
        print(f"{file.stem} ({peer.packages[0]} {version(peer, peer.packages[0])}): {verdict}")
    return int(changed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
