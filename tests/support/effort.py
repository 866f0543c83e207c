"""Selection of test cases: a part is run by `make test`, all by `make test-slow`.

Most of the time of a first run is compilation of one object for each combination of rule, storage, scale, slack and
number type. Tests marked `interpreted` therefore run without compilation in `make test`, with all combinations of
rules and storages; `test_jit.py` checks that compiled and interpreted code take the same steps.
"""

from __future__ import annotations

import os

import pytest

THOROUGH = os.environ.get("MAXMARGIN_THOROUGH") == "1"  # set by `make test-slow`
COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

interpreted = pytest.mark.interpreted  # run by `make test` with NUMBA_DISABLE_JIT=1
thorough = pytest.mark.thorough  # more examples with MAXMARGIN_THOROUGH=1


def examples(quick: int, all_of_them: int) -> int:
    """Return the number of examples of a test marked `thorough`."""
    return all_of_them if THOROUGH else quick
