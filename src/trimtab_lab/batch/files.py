"""Lists, reads and writes files, local or in object storage; a reader sees a whole file or none.

An address such as ``s3://…`` goes through fsspec.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from trimtab.errors import InvalidSetting, MissingExtra

PARTIAL = ".partial-"
"""Prefix of the temporary name of a file that is being written."""


class SourceFile(NamedTuple):
    """A file to read; ``state`` changes with its content and is known without reading it."""

    name: str
    size: int
    state: str


def is_address(name: str) -> bool:
    """Whether a name is an address for fsspec."""
    return "://" in name


def found(name: str, suffixes: tuple[str, ...]) -> list[SourceFile]:
    """The file called ``name``, or all files below the folder with these suffixes, sorted.

    Raises InvalidSetting if there is none, MissingExtra without fsspec.
    """
    listed_files = _remote_files(name) if is_address(name) else _local_files(name)
    alone = len(listed_files) == 1 and listed_files[0].name == name
    chosen = [file for file in listed_files if alone or file.name.endswith(suffixes)]
    if not chosen:
        ends = ", ".join(suffixes)
        raise InvalidSetting(f"{name}: nothing to read: give a file, or a folder with {ends}")
    return sorted(chosen)


def relative(name: str, source: str) -> str:
    """The name of a file relative to the source, the same wherever the source is."""
    name, source = name.replace(os.sep, "/"), source.replace(os.sep, "/")
    return name.removeprefix(source).lstrip("/") or name.rpartition("/")[2]


def named(relative_name: str, source: str) -> str:
    """The name of the file of the source that ``relative`` gave this name."""
    alone = source.replace(os.sep, "/").rpartition("/")[2] == relative_name
    return source if alone and not is_folder(source) else f"{source.rstrip('/')}/{relative_name}"


def is_folder(name: str) -> bool:
    """Whether ``name`` is a folder.  Raises MissingExtra."""
    if not is_address(name):
        return os.path.isdir(name)
    system, path = remote(name)
    return bool(system.isdir(path))


def _local_files(name: str) -> list[SourceFile]:
    top = Path(name)
    inside = top.rglob("*") if top.is_dir() else [top]
    paths = [path for path in inside if path.is_file() and not path.name.startswith(PARTIAL)]
    files = [(str(path), path.stat()) for path in paths]
    return [SourceFile(file, stat.st_size, str(stat.st_mtime_ns)) for file, stat in files]


def _remote_files(name: str) -> list[SourceFile]:
    system, path = remote(name)
    if not system.exists(path):
        return []
    if not system.isdir(path):
        infos = [(name, system.info(path))]
    else:
        top = path.rstrip("/")
        listed = system.find(path, detail=True)
        infos = [(f"{name.rstrip('/')}{own[len(top) :]}", info) for own, info in listed.items()]
    return [SourceFile(own, int(info["size"]), system.ukey(info["name"])) for own, info in infos]


def remote(name: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it.  Raises MissingExtra."""
    try:
        core = import_module("fsspec.core")
    except ImportError:
        raise MissingExtra(f"{name} needs fsspec: pip install 'trimtab[batch]'") from None
    try:
        system, path = core.url_to_fs(name)
    except ImportError as error:
        raise MissingExtra(f"{name}: {error}") from None
    except ValueError as error:
        raise InvalidSetting(f"{name}: {error}; give a path or an address fsspec knows") from None
    return system, path


def opened(name: str) -> IO[bytes]:
    """Open a file for reading; it is seekable.  Raises OSError, MissingExtra."""
    if not is_address(name):
        return open(name, "rb")
    system, path = remote(name)
    file: IO[bytes] = system.open(path, "rb")
    return file


class OutputFolder(Protocol):
    """The folder of the output; names in it have "/" between their parts."""

    def write(self, name: str) -> contextlib.AbstractContextManager[IO[bytes]]:
        """A file to write; it appears whole under ``name`` if the block ends without an error."""

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if it does not exist."""

    def size(self, name: str) -> int | None:
        """The size of a file in bytes; None if it does not exist."""

    def names(self) -> list[str]:
        """All files in the folder, including partly written ones."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""


def folder(name: str) -> OutputFolder:
    """The folder of a name.  Raises MissingExtra."""
    return RemoteFolder(name) if is_address(name) else LocalFolder(name)


class LocalFolder:
    """On disk: files are written under a temporary name, flushed to the disk, then renamed."""

    def __init__(self, name: str) -> None:
        self.path = Path(name)

    @contextlib.contextmanager
    def write(self, name: str) -> Iterator[IO[bytes]]:
        """See ``OutputFolder``.  Raises OSError."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.parent / f"{PARTIAL}{uuid.uuid4().hex}"
        try:
            with partial.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
            _sync(target.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    def read(self, name: str) -> bytes | None:
        """See ``OutputFolder``."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def size(self, name: str) -> int | None:
        """See ``OutputFolder``."""
        try:
            return (self.path / name).stat().st_size
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """See ``OutputFolder``."""
        inside = (file for file in self.path.rglob("*") if file.is_file())
        return sorted(file.relative_to(self.path).as_posix() for file in inside)

    def remove(self, name: str) -> None:
        """See ``OutputFolder``; a folder that becomes empty is removed too."""
        target = self.path / name
        target.unlink(missing_ok=True)
        if target.parent != self.path:
            with contextlib.suppress(OSError):
                target.parent.rmdir()


def _sync(path: Path) -> None:
    """Flush the names in a folder to the disk, if the system supports it."""
    with contextlib.suppress(OSError):
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


class RemoteFolder:
    """Through fsspec.  Object stores show a file only when it is closed; on other file systems,
    files are read only after the file that marks them as complete."""

    def __init__(self, name: str) -> None:
        self.system, path = remote(name)
        self.path = path.rstrip("/")

    @contextlib.contextmanager
    def write(self, name: str) -> Iterator[IO[bytes]]:
        """See ``OutputFolder``.  Raises OSError."""
        target = f"{self.path}/{name}"
        self.system.makedirs(target.rpartition("/")[0], exist_ok=True)
        file = self.system.open(target, "wb")
        try:
            yield file
        except BaseException:
            with contextlib.suppress(Exception):
                file.discard()
            raise
        file.close()

    def read(self, name: str) -> bytes | None:
        """See ``OutputFolder``."""
        try:
            data: bytes = self.system.cat_file(f"{self.path}/{name}")
        except FileNotFoundError:
            return None
        return data

    def size(self, name: str) -> int | None:
        """See ``OutputFolder``."""
        try:
            return int(self.system.size(f"{self.path}/{name}"))
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """See ``OutputFolder``."""
        self.system.invalidate_cache()
        if not self.system.exists(self.path):
            return []
        return sorted(file[len(self.path) + 1 :] for file in self.system.find(self.path))

    def remove(self, name: str) -> None:
        """See ``OutputFolder``."""
        with contextlib.suppress(FileNotFoundError):
            self.system.rm_file(f"{self.path}/{name}")
