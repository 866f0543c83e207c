"""What is needed to compare with packages that are compiled where they are installed."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # what they warn of at import is theirs
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:(liblinear|libsvm)")
