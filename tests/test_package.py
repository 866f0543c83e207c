"""What is around the code: versions that agree, files that others read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import maxmargin

ROOT = Path(__file__).resolve().parents[1]


def test_there_is_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert [project["version"]] == cited == [maxmargin.__version__]
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", maxmargin.__version__)


def test_types_are_announced():
    assert (Path(maxmargin.__file__).parent / "py.typed").is_file()
