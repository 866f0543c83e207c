"""Selection of test cases: a part is run by `make test`, all by `make test-slow`.

Most of the time of a first run is compilation of one object for each combination of rule, storage, scale, slack and
number type. Tests marked `interpreted` therefore run without compilation in `make test`, with all combinations of
rules and storages; `test_jit.py` checks that compiled and interpreted code take the same steps. Other tests compile a
selection in `make test`; all combinations are slow tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

THOROUGH = os.environ.get("MAXMARGIN_THOROUGH") == "1"  # set by `make test-slow`
COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
# rules compiled for sparse rows as well: integer arithmetic, each other scale, and each kind of intercept
ON_SPARSE = ("perceptron", "mpu", "dcd", "alma", "pumma")
ON_ALL = ("perceptron", "mpu")  # also for float32 rows, rows of zeros and ones, and 64-bit indices

interpreted = pytest.mark.interpreted  # run by `make test` with NUMBA_DISABLE_JIT=1
thorough = pytest.mark.thorough  # more examples with MAXMARGIN_THOROUGH=1


def examples(quick: int, all_of_them: int) -> int:
    """Return the number of examples of a test marked `thorough`."""
    return all_of_them if THOROUGH else quick


def selected(combinations: Iterable[Any], quick: Callable[..., bool]) -> list[Any]:
    """Return parameters of a test; in compiled runs combinations that are not `quick` are slow tests."""
    out = []
    for c in combinations:
        values = c if isinstance(c, tuple) else (c,)
        slow = COMPILED and not quick(*values)
        out.append(pytest.param(*values, marks=pytest.mark.slow if slow else ()))
    return out


def compiled_for(name: str, storage: str) -> bool:
    """Return whether `make test` compiles this rule for this storage: dense, csr, or others."""
    return storage == "dense" or name in (ON_SPARSE if storage == "csr" else ON_ALL)
