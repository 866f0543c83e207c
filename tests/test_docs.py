"""What the pages say is run."""

from __future__ import annotations

import re
from pathlib import Path

from maxmargin.rules import RULES

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_page_of_algorithms_runs_and_names_them_all(capsys):
    page = (DOCS / "algorithms.md").read_text()
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, scope)
    printed = capsys.readouterr().out
    assert printed.startswith("CERTIFIED CERTIFIED CONVERGED")
    rows = re.findall(r"^\| `([\w-]+)` \| `(\w+)` \|", page, re.M)
    assert dict(rows) == {name: cls.__name__ for name, cls in RULES.items()}
