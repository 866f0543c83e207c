"""Plugin of pytest that replaces classes of scikit-learn by classes of maxmargin with the same constructors.

It is loaded with ``-p interop.substitutes`` before the test modules import the names from scikit-learn's packages.
"""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

import pytest
import sklearn.linear_model
import sklearn.svm

import maxmargin.sklearn as ours

SUBSTITUTES = {
    (sklearn.svm, "LinearSVC"): ours.LinearSVC,
    (sklearn.svm, "SVC"): ours.SVC,
    (sklearn.linear_model, "SGDClassifier"): ours.SGDClassifier,
}
OURS = tuple(SUBSTITUTES.values())

_made: list[type] = []
_outcomes: dict[str, dict[str, Any]] = {}


def _counted(cls: type, *arguments: Any, **parameters: Any) -> Any:
    _made.append(cls)
    return object.__new__(cls)


def pytest_configure(config: pytest.Config) -> None:
    for (package, name), cls in SUBSTITUTES.items():
        setattr(package, name, cls)
    for cls in OURS:
        cls.__new__ = _counted  # pyright: ignore[reportAttributeAccessIssue]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Record whether the test uses a class of maxmargin."""
    _made.clear()
    given = getattr(getattr(item, "callspec", None), "params", {}).values()
    try:
        return (yield)
    finally:
        ours = any(isinstance(one, OURS) or one in OURS for one in given if isinstance(one, (type, *OURS)))
        item.user_properties.append(("ours", ours or bool(_made)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", type=Path, help="file for the outcome of every test")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if call.excinfo is not None and not report.skipped:
        said = "".join(traceback.format_exception_only(call.excinfo.type, call.excinfo.value))
        report.user_properties.append(("said", said))
    if report.when == "call" or report.outcome != "passed":
        _outcomes[_name(item)] = {"outcome": report.outcome, **dict(report.user_properties)}
    return report


def _name(item: pytest.Item) -> str:
    """Return module::test[parameters], the name in the list of differences."""
    return f"{item.path.stem}::{item.nodeid.partition('::')[2]}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--outcomes")
    if path is not None:
        path.write_text(json.dumps(_outcomes))
