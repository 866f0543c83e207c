"""A limit of the memory of a process, by a control group of Linux."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# The folders in which groups are made, and the files that hold their limits: versions 1 and 2 of control groups.
VERSIONS = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)


@contextmanager
def memory_group(limit: int) -> Iterator[Path | None]:
    """Make a group whose processes have `limit` bytes together; None where the machine or the user has no such groups.

    A process joins by `join`. What it allocates counts, and pages of files that it is the first to read. Beyond the
    limit pages of files are dropped; where that does not suffice, the process is killed, or swapped out.
    """
    found = next((group for version in VERSIONS if (group := _made(*version, limit)) is not None), None)
    try:
        yield found
    finally:
        if found is not None:
            with suppress(OSError):
                found.rmdir()


def _made(root: Path, name: str, limit: int) -> Path | None:
    """Return a new group with a limit; None where it cannot be made."""
    group = root / f"maxmargin-{secrets.token_hex(4)}"
    try:
        group.mkdir()
    except OSError:
        return None
    with suppress(OSError):
        if (group / "cgroup.procs").exists():
            (group / name).write_text(str(limit))
            return group
    with suppress(OSError):
        group.rmdir()
    return None


def join(group: Path) -> None:
    """Move this process into a group, which counts what is allocated afterwards."""
    (group / "cgroup.procs").write_text(str(os.getpid()))
