"""Folders of caches: their names, their headers, and how they are written, found valid, and deleted."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..numerics.files import OLD, delete_left_over, temporary_name, written_whole
from .files import Digest
from .table import DataError

SUFFIX = ".maxmargin-cache"
FORMAT, VERSION = "maxmargin rows", 1
HEADER = "header.json"
TOKEN = "token"
ARRAYS = ("X.npy", "data.npy", "indices.npy", "indptr.npy", "codes.npy")
LONGEST = 255  # bytes of a name on most file systems
_NAMES = {HEADER, TOKEN, "numbers.npy", *ARRAYS}  # nothing else is in a cache


def cache_place(
    sources: Sequence[Path], labels: Sequence[Path], cache_dir: str | os.PathLike[str] | None
) -> Path:
    """Return the folder of the cache of these sources with these files of labels.

    Where one folder may hold caches of several sources of one name, or the name would be too long, it has a part that
    depends on their paths. Beside a single source this part depends on the names of the label files, if there are any,
    and not on their folders: the cache of a folder that was moved is found.
    """
    name = os.fsencode(sources[0].name)
    by_paths = len(sources) > 1 or cache_dir is not None or len(name) + len(SUFFIX) > LONGEST
    tag = ""
    if by_paths or labels:
        parts = [path.absolute() if by_paths else path.name for path in (*sources, *labels)]
        tag = "-" + sha256(b"\n".join(map(os.fsencode, parts))).hexdigest()[:10]
    begin = name[: LONGEST - len(tag) - len(SUFFIX)]
    shown = os.fsdecode(begin) if begin == name else begin.decode(errors="ignore")  # whole characters
    return Path(cache_dir or sources[0].absolute().parent) / (shown + tag + SUFFIX)


def file_record(path: Path) -> dict[str, Any]:
    """Return path, size, inode (0 where the system has none), and times of a file.

    `mv` and `cp -p` keep the time of the content: the inode, and the time of the last change of the status (on Windows
    that of the creation), tell a file from another one that took its name.
    """
    status = path.stat()
    return {
        "path": str(path.absolute()),
        "size": status.st_size,
        "inode": status.st_ino,
        "mtime_ns": status.st_mtime_ns,
        "ctime_ns": status.st_ctime_ns,
    }


def read_header(folder: Path) -> dict[str, Any] | None:
    """Return the header of a cache; None where the folder is none, or its header is damaged."""
    try:
        header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        return header if header["format"] == FORMAT and header["version"] == VERSION else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def header_bytes(header: dict[str, Any]) -> bytes:
    """Return the content of the header of a cache, with its digest."""
    return json.dumps(header | {"digest": _digest(header)}).encode()


def is_header_of(folder: Path, header: dict[str, Any]) -> bool:
    """Return whether a header belongs to the arrays in a folder: another process may have replaced the folder.

    Each cache has a random token, in its header and in a file beside its arrays. A folder that was replaced never comes
    back: where its token is found after its arrays were opened, they are those of the header.
    """
    with suppress(FileNotFoundError):
        return (folder / TOKEN).read_bytes() == header["token"].encode()
    return False


def _digest(header: dict[str, Any]) -> str:
    return sha256(json.dumps(header).encode()).hexdigest()


def valid_header(folder: Path, facts: dict[str, Any], files: Sequence[Path]) -> dict[str, Any] | None:
    """Return the header of a cache that was made of these files with these options; None where there is none.

    A file of the same size, but of another inode or time or in another place, is read, and its digest compared. The
    place of rows is that within their source, which may have been moved; that of labels is their path.

    Parameters
    ----------
    folder : Path
        The cache.
    facts : dict
        The entries of its header that are known: `options`, and the paths of the `sources`.
    files : sequence of Path
        The files of rows, and then those of labels.
    """
    header = read_header(folder)
    if header is None or header.pop("digest", None) != _digest(header):
        return None
    if header["options"] != facts["options"] or len(header["files"]) != len(files):
        return None
    if not is_header_of(folder, header):
        return None
    if any(not _has_size(folder / name, size) for name, size in header["arrays"].items()):
        return None
    current = [file_record(path) for path in files]
    if any(new["size"] != old["size"] for new, old in zip(current, header["files"], strict=True)):
        return None
    source, old_source = facts["sources"][0], header["sources"][0]
    touched = False
    for path, new, old in zip(files, current, header["files"], strict=True):
        moved = new["path"].removeprefix(source) != old["path"].removeprefix(old_source)
        if moved or any(new[what] != old.get(what) for what in ("inode", "mtime_ns", "ctime_ns")):
            if Digest().read(path) != old["sha256"]:
                return None
            touched = True
        old |= new
    header["sources"] = facts["sources"]
    if touched and is_header_of(folder, header):  # else another cache would lose its header
        with suppress(OSError), written_whole(folder / HEADER) as file:  # else compared again the next time
            file.write(header_bytes(header))
    return header


def _has_size(path: Path, size: int) -> bool:
    """Return whether a file has this size."""
    return path.is_file() and path.stat().st_size == size


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Create a temporary folder that takes the place of a cache when it is complete, and is deleted after a failure.

    Temporary folders of processes that have ended are deleted.

    Raises
    ------
    DataError
        If a folder of this name is no cache.
    """
    if target.exists() and not _only_cache(target):
        raise DataError(
            f"{target}: this is no cache, but has the name of one; move it, or name another folder."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    delete_left_over(target.parent)
    temporary = temporary_name(target)
    temporary.mkdir()
    try:
        yield temporary
        while True:
            old = temporary.with_name(temporary.name + OLD)
            with suppress(FileNotFoundError):
                os.rename(target, old)  # a folder with files in it cannot be replaced
            try:
                os.rename(temporary, target)
                break
            except OSError:
                if not target.exists():  # else another process has written it just now
                    raise
            finally:
                _remove(old)
    except BaseException:
        _remove(temporary)
        raise


def _only_cache(folder: Path) -> bool:
    """Return whether a folder holds files of a cache only, complete or, after a process was killed, in part."""
    return folder.is_dir() and all(
        path.name in _NAMES or path.name.startswith(f".{HEADER}.") for path in folder.iterdir()
    )


def _remove(folder: Path) -> None:
    """Delete a folder of a cache, if there is one."""
    if folder.is_dir() and not folder.is_symlink() and _only_cache(folder):
        shutil.rmtree(folder, ignore_errors=True)


def clear_cache(
    paths: Iterable[str | os.PathLike[str]] | None = None, cache_dir: str | os.PathLike[str] | None = None
) -> dict[Path, int]:
    """Delete caches; nothing but folders with the header of a cache is deleted.

    Parameters
    ----------
    paths : iterable of path-like, default=None
        Sources, or caches themselves; None: all caches in the folder.
    cache_dir : path-like, default=None
        The folder of the caches; by default that of each source, or the current folder.

    Returns
    -------
    dict
        The bytes of each folder that was deleted.
    """
    named = None if paths is None else {Path(path).absolute() for path in paths}
    folders = {Path(cache_dir or ".")} if named is None or cache_dir else {path.parent for path in named}
    freed = {}
    for folder in sorted(path for place in folders for path in place.glob(f"*{SUFFIX}")):
        header = read_header(folder)
        if header is None or not _only_cache(folder):
            continue
        if named is None or named & {folder.absolute(), *map(Path, header.get("sources", ()))}:
            freed[folder] = sum(path.stat().st_size for path in folder.iterdir())
            _remove(folder)
    return freed
