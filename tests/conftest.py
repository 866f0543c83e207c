"""Shared fixtures: the folder of real data, deterministic hypothesis, and the usual handler of Ctrl-C."""

from __future__ import annotations

import os
import platform
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings
from numba.core import config

PHASES = [Phase.explicit, Phase.generate, Phase.shrink]
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, phases=PHASES)
settings.load_profile("repeatable")

# background jobs inherit SIGINT as ignored; tests of Ctrl-C and their subprocesses need the default handler
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the modules without interpreted tests where these are asked for: imports take half of that time."""
    only = config.option.markexpr.startswith("interpreted") and collection_path.suffix == ".py"
    return True if only and "interpreted" not in collection_path.read_text(encoding="utf-8") else None


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the real data sets: MAXMARGIN_DATA, or ../shared/data beside the root of the repository."""
    folder = ROOT / os.environ.get("MAXMARGIN_DATA", "../shared/data")
    if not folder.is_dir():
        reason = f"no real data in {folder} (set MAXMARGIN_DATA)"
        if os.environ.get("MAXMARGIN_REQUIRE_DATA") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder.resolve()


@pytest.fixture(autouse=True)
def user_cache(tmp_path_factory, monkeypatch) -> Path:
    """Another folder in place of the user's cache folder."""
    folder = tmp_path_factory.mktemp("user")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "maxmargin"


@pytest.fixture(autouse=True)
def compiled_arithmetic():
    """Suppress floating-point warnings that compiled code does not give, and NumPy's on ARM (its issue 28687)."""
    ignored = config.DISABLE_JIT or platform.machine() in ("arm64", "aarch64")
    with np.errstate(all="ignore" if ignored else None):
        yield
