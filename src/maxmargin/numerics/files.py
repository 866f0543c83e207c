"""Files: what names them, whole files written at once, what a killed process leaves over, and their faults."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

CLUSTERS = {"dask": "dask", "dask_expr": "dask", "pyspark": "spark"}  # of the packages of collections
_TEMPORARY = re.compile(r"\..*\.maxmargin-([0-9a-f]{6})-(\d{1,10})-[0-9a-f]{8}", re.DOTALL)


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` when all of it is on the disk.

    After a failure an old file of that name is unchanged, and the temporary file is deleted. A process that is killed
    leaves the temporary file: the next one that writes to the same folder deletes it.

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
    delete_left_over(target.parent)
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


def temporary_name(target: Path) -> Path:
    """Return a new name beside a file or folder, which tells what it is to become, the machine and the process."""
    # most file systems limit a name to 255 bytes, not characters; the parts after the target take 38 at most
    begin = os.fsencode(target.name)[:200].decode(errors="ignore")
    return target.with_name(f".{begin}.maxmargin-{_machine()}-{os.getpid()}-{secrets.token_hex(4)}")


def delete_left_over(folder: Path) -> None:
    """Delete the temporary files and folders here that processes of this machine that have ended have left over.

    Nothing is deleted but names of `temporary_name`. What cannot be deleted, as files of other users, stays.
    """
    with suppress(OSError):  # a folder that may not be listed
        for path in list(folder.iterdir()):
            found = _TEMPORARY.fullmatch(path.name)
            if found is None or found[1] != _machine() or _is_running(int(found[2])):
                continue
            shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):  # a file, not a folder
                path.unlink()


def _machine() -> str:
    """Return a digest of the host and its namespace of process numbers; other hosts may share a folder with it.

    Two containers may have one host name; on Linux they have different namespaces of process numbers, or, on two
    machines, different numbers of the boot.
    """
    facts = [socket.gethostname()]
    with suppress(OSError):  # Linux alone has these files
        facts += [os.readlink("/proc/self/ns/pid"), Path("/proc/sys/kernel/random/boot_id").read_text()]
    return sha256("\n".join(facts).encode()).hexdigest()[:6]


def _is_running(process: int) -> bool:
    """Return whether a process runs; on Windows, what it uses cannot be deleted anyway."""
    if os.name == "nt":
        return process == os.getpid()
    try:
        os.kill(process, 0)
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


def place_of(X: Any, y: Any = ()) -> str:
    """Return where rows are: on a cluster ("dask", "spark"), in "files", or in "memory".

    Files are a path, a list of paths, or a data set of pyarrow. Tables and streams of pyarrow without y, and data
    frames of which y names the label column, are read as files are.
    """
    package = type(X).__module__.split(".", 1)[0]
    if package in CLUSTERS:
        return CLUSTERS[package]
    names = X if isinstance(X, list | tuple) and X else [X]
    files = (
        all(isinstance(name, str | os.PathLike) for name in names) or type(X).__module__ == "pyarrow._dataset"
    )
    whole = isinstance(y, str) or (y is None and package == "pyarrow")
    return "files" if files or (whole and hasattr(X, "__arrow_c_stream__")) else "memory"


class Fault(Exception):
    """A fault of a file and its remedy, in whole sentences.

    Parameters
    ----------
    message : str
    line : int, default=None
        The line of the file in which it is.
    kind : type of ValueError, default=None
        The error that it becomes, in place of the usual one.
    """

    def __init__(self, message: str, line: int | None = None, kind: type[ValueError] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.place = "" if line is None else f", line {line}"


@contextmanager
def faults_of(name: str | os.PathLike[str], kind: type[ValueError]) -> Iterator[None]:
    """Turn a fault into an error of this kind, whose message begins with the name of the file."""
    try:
        yield
    except Fault as fault:
        raise (fault.kind or kind)(f"{name}{fault.place}: {shortened(str(fault))}") from None


def shortened(text: str) -> str:
    """Return a text of at most 800 printable characters, without its middle if need be: the remedy is at the end.

    A message may quote names and numbers of a damaged file by the thousand.
    """
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    return text if len(text) <= 800 else f"{text[:397]} ... {text[-397:]}"
