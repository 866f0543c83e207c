"""Commands killed at random moments: no file is half written or lost, and the next run deletes what is left."""

from __future__ import annotations

import json
import os
import sys

import kills
import pytest
from processes import run_python

# `make faults` kills each of ten commands a hundred times
KILLS = int(os.environ.get("MAXMARGIN_KILLS", "4"))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")


def test_files_are_old_or_new_after_a_kill_and_nothing_stays(tmp_path):
    found = json.loads(run_python(kills.__file__, tmp_path, KILLS, *names()))
    assert len(found) >= len(kills.QUICK)
    for name, counts in found.items():
        print(name, counts, file=sys.stderr)
        assert counts["killed"] == KILLS, name


def names() -> list[str]:
    """Return the commands to kill: all, or for few kills those that are loaded and compiled soon."""
    return [] if KILLS > 4 else list(kills.QUICK)
