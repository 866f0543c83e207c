"""Atomic writing of files."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` when all of it is on the disk.

    After a failure an old file of that name is unchanged, and the temporary file is deleted. A process that is killed
    leaves the temporary file: the next one that writes the same file deletes it.

    Parameters
    ----------
    path : str or path-like

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    check_place(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe: it must not be replaced
        with _named(path), open(path, "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    temporary = temporary_name(target)
    for stray in left_over(target):
        with suppress(OSError):
            stray.unlink()
    try:
        with _named(path, temporary), open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # make the new name durable; some systems cannot open a folder
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def temporary_name(target: Path) -> Path:
    """Return a new name beside a file or folder, which tells what it is to become, the machine and the process."""
    return target.with_name(f"{_beginning(target)}{os.getpid()}.{secrets.token_hex(4)}")


def left_over(target: Path) -> list[Path]:
    """Return the paths of `temporary_name` that are left over from processes of this machine that have ended."""
    begin = _beginning(target)
    with suppress(OSError):  # a folder that may not be listed
        names = [name for name in os.listdir(target.parent) if name.startswith(begin)]
        return [
            target.with_name(name)
            for name in names
            if not _is_running(name.removeprefix(begin).split(".")[0])
        ]
    return []


def _beginning(target: Path) -> str:
    """Return the beginning of temporary names: other machines may share a folder, and not its processes."""
    host = sha256(socket.gethostname().encode()).hexdigest()[:6]
    # Most file systems limit a name to 255 bytes, not characters. The points, the host, the process and the random
    # number take 28 at most: a process has at most 10 digits.
    begin = os.fsencode(target.name)[:200].decode(errors="ignore")
    return f".{begin}.{host}."


def _is_running(process: str) -> bool:
    """Return whether a process of this number runs; on Windows, files that are open cannot be deleted anyway."""
    if not process.isdecimal():
        return False
    if os.name == "nt":
        return int(process) == os.getpid()
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # of another user
        pass
    return True


@contextmanager
def _named(path: str | os.PathLike[str], temporary: Path | None = None) -> Iterator[None]:
    """Name the file in errors without a name, as of a full disk, and in those about the temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(temporary)):
            error.filename = os.fspath(path)
        raise


def check_place(path: str | os.PathLike[str], *others: str | os.PathLike[str]) -> None:
    """Raise OSError if a file cannot be written, or is one of the `others`, which are read."""
    for other in others:
        if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
            raise FileExistsError(errno.EEXIST, "this file is read from; name another one", str(path))
    folder = Path(os.path.realpath(path)).parent
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", str(path))
    if os.path.exists(path) and not os.path.isfile(path):
        return
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(folder))
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "nothing may be written to this folder", str(folder))
