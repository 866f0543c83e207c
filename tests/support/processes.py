"""Python in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any


def run_python(*arguments: Any, clean: tuple[str, ...] = (), **environment: str) -> str:
    """Run Python with these arguments and variables, without those of the prefixes `clean`; return its output."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(clean or ("\n",))}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,  # ends a process that hangs: slow tests compile everything with bounds checks
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
