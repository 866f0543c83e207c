"""Real data where they are, hypothesis made repeatable, and Ctrl-C as at a prompt."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings
from numba.core import config

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
settings.load_profile("repeatable")

# a job in the background inherits Ctrl-C as ignored; the tests of Ctrl-C, and what they start, need it as it is
# at a prompt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Where the real data sets lie: MAXMARGIN_DATA, or ../shared/data beside the repository's root."""
    folder = ROOT / os.environ.get("MAXMARGIN_DATA", "../shared/data")
    if not folder.is_dir():
        reason = f"no real data in {folder} (set MAXMARGIN_DATA)"
        if os.environ.get("MAXMARGIN_REQUIRE_DATA") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder.resolve()


@pytest.fixture
def rules_alone(monkeypatch):
    """No problem is small enough for the exact step: the rules have to get there by themselves."""
    monkeypatch.setattr("maxmargin.fit.exact.MAX_ROWS_TO_OPTIMUM", 0)
    monkeypatch.setattr("maxmargin.fit.exact.MAX_ROWS_TO_TOL", 0)
    monkeypatch.setattr("maxmargin.fit.small_dense.MAX_ROWS", 0)


@pytest.fixture(autouse=True)
def compiled_arithmetic():
    """No warning of overflow or of a division by zero in interpreted code: compiled code gives none either."""
    with np.errstate(all="ignore" if config.DISABLE_JIT else None):
        yield
