"""Metadata of the package: version, public names for type checkers, py.typed."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import maxmargin

ROOT = Path(__file__).resolve().parents[2]


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert [project["version"]] == cited == [maxmargin.__version__]
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", maxmargin.__version__)


def test_type_checking_imports_name_exactly_the_public_names():
    """Type checkers see the imports under TYPE_CHECKING, and no __getattr__ that accepts any name."""
    tree = ast.parse(Path(maxmargin.__file__).read_text())
    assert Path(maxmargin.__file__).with_name("py.typed").is_file()
    branches = [node for node in tree.body if isinstance(node, ast.If)]
    typed, untyped = branches
    assert ast.unparse(typed.test) == "TYPE_CHECKING"
    assert ast.unparse(untyped.test) == "not TYPE_CHECKING"
    found = {alias.name: node.module for node in typed.body for alias in node.names}
    assert sorted(found) == sorted(maxmargin.__all__)
    for name, module in found.items():
        assert getattr(import_module(f"maxmargin.{module}"), name) is getattr(maxmargin, name)
    assert "__getattr__" not in {getattr(node, "name", None) for node in tree.body}
    with pytest.raises(ImportError, match="Nonsense"):
        exec("from maxmargin import Nonsense")
