"""Commands killed at random moments: no file is half written or lost, and the next run deletes what is left."""

from __future__ import annotations

import json
import os
import sys

import kills
import pytest
from processes import run_python

# `make faults` kills each command a hundred times
KILLS = int(os.environ.get("MAXMARGIN_KILLS", "1"))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")
def test_files_are_old_or_new_after_a_kill_and_nothing_stays(tmp_path):
    found = json.loads(run_python(kills.__file__, tmp_path, KILLS))
    print(found, file=sys.stderr)
    assert [counts["killed"] for counts in found.values()] == [KILLS] * 5
