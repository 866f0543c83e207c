"""Fits that end before a bound is found: every output states that nothing is proved."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from command import run

from maxmargin import (
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    Status,
    save,
    support_report,
    to_json,
    verify,
)
from maxmargin.certificates.certificate import Certificates
from maxmargin.plots import BoundsDisplay
from maxmargin.problem.problem import LOSSES, Problem

INF = np.inf
EXPIRED = 1e-9  # seconds: expired before the first check of the clock


def labelled(classes=2, n=60):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    return X, np.argmax(X @ rng.standard_normal((4, classes)), axis=1)


def stopped(kind, classes=2):
    X, y = labelled(classes)
    model = (
        KernelMaxMarginClassifier(C=INF, max_time=EXPIRED, random_state=0)
        if kind == "kernel"
        else MaxMarginClassifier(C=INF, p=kind, max_time=EXPIRED, random_state=0)
    )
    return model.fit(X, y), X, y


@pytest.fixture
def files(tmp_path):
    """Write a stopped model with this number of classes and its data; return both paths."""

    def write(kind, classes):
        fitted, X, y = stopped(kind, classes)
        model: Any = fitted
        data, path = tmp_path / "data.csv", tmp_path / "stopped.model"
        lines = [
            ",".join([*(repr(float(value)) for value in row), str(label)])
            for row, label in zip(X, y, strict=True)
        ]
        data.write_text("\n".join(["a,b,c,d,label", *lines]) + "\n", encoding="utf-8")
        model.feature_names_in_ = np.array(list("abcd"), dtype=object)
        model.source_ = {"label": "label", "first_index": None}
        save(model, path)
        return path, data

    return write


@pytest.mark.parametrize(("kind", "classes"), [(3, 2), (1.5, 3), ("kernel", 3)])
def test_gap_is_infinite_and_text_states_that_nothing_is_proved(kind, classes):
    model, X, y = stopped(kind, classes)
    assert model.status_ is Status.MAX_TIME
    for certificate in (model.certificate_, verify(model, X, y)):
        assert certificate.gap == INF
        assert certificate.proves_nothing
        assert "nothing is proved" in repr(certificate)
        for part in certificate.certificates:
            assert (part.lower, part.upper, part.gap) == (-INF, INF, INF)
            assert "nothing is proved" in str(part)
    assert all(report.gap == INF for report in model.history_)
    assert "nothing is proved" in str(support_report(model, X, y))


@pytest.mark.parametrize("C", [1.0, INF])
@pytest.mark.parametrize("loss", LOSSES)
def test_gaps_are_never_nan(C, loss):
    problem = Problem(loss, C)
    values = [-INF, -1e308, -1.0, -0.0, 0.0, 5e-324, 1.0, 1e308, INF, np.nan]
    for lower in values:
        for upper in values:
            gap = problem.gap(lower, upper)
            assert not np.isnan(gap)
            if not lower > 0.0 and not upper < INF:
                assert gap == INF


def test_certificates_with_one_bound_prove_something():
    X, y = labelled()
    model = MaxMarginClassifier(C=INF, p=3, random_state=0, callback=lambda report: True).fit(X, y)
    assert not model.certificate_.proves_nothing
    assert "nothing is proved" not in str(model.certificate_)
    mixed = Certificates((0, 1), (*model.certificate_.certificates, *stopped(3)[0].certificate_.certificates))
    assert not mixed.proves_nothing
    assert mixed.gap == INF
    assert [("nothing is proved" in line) for line in str(mixed).splitlines()] == [False, False, True]


@pytest.mark.parametrize(("kind", "classes"), [(3, 2), ("kernel", 3)])
def test_commands_report_it_and_exit_with_3(files, tmp_path, kind, classes):
    path, data = files(kind, classes)
    page = tmp_path / "page.html"
    fit = ["fit", data, "--C", "inf", "--p", "3", "--max-time", EXPIRED, "-o", tmp_path / "again.model"]
    for command in (["check", path, data], ["report", path, data, "-o", page], fit):
        result = run(*command)
        assert result.exit_code == 3
        assert "nothing is proved" in result.output
        assert "verified" not in result.output
    facts = json.loads(run("check", path, data, "--json").output)
    assert facts["verified"] is False
    assert facts["gap"] == "inf"
    assert {bounds["gap"] for bounds in facts["bounds"]} == {"inf"}
    assert json.loads(run(*fit, "--json").output)["nothing_proved"].startswith("nothing is proved")
    text = page.read_text(encoding="utf-8")
    assert "Nothing is proved" in text
    assert "nan" not in text


def test_displays_refuse_it_and_exported_json_records_it(tmp_path):
    model, _, _ = stopped(3)
    with pytest.raises(ValueError, match="nothing is proved"):
        BoundsDisplay.from_estimator(model)
    to_json(model, tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert record["decisions"][0]["bounds"]["nothing_proved"] is True
