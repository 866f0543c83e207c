"""Real data where they are, and hypothesis made repeatable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
settings.load_profile("repeatable")

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
    monkeypatch.setattr("maxmargin.solve.FEW_ROWS", 0)
    monkeypatch.setattr("maxmargin.solve.MANY_ROWS", 0)
    monkeypatch.setattr("maxmargin.solve.ONE_CALL", 0)
