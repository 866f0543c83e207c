"""Fits that end before a bound is found: every output states that nothing is proved."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

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
from maxmargin.cli.app import app
from maxmargin.plots import BoundsDisplay
from maxmargin.problem.problem import LOSSES, Problem
from maxmargin.report import Outcome, write_report

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


KINDS = pytest.mark.parametrize("kind", [3, 1.5, "kernel"])
CLASSES = pytest.mark.parametrize("classes", [2, 3])


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


@KINDS
@CLASSES
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


@KINDS
@CLASSES
def test_check_command_reports_it_and_exits_with_3(files, kind, classes):
    path, data = files(kind, classes)
    result = CliRunner().invoke(app, ["check", str(path), str(data)])
    assert result.exit_code == 3
    assert result.output.startswith("nothing is proved")
    assert "verified" not in result.output
    result = CliRunner().invoke(app, ["check", str(path), str(data), "--json"])
    assert result.exit_code == 3
    facts = json.loads(result.output)
    assert facts["verified"] is False
    assert facts["reason"].startswith("nothing is proved")
    assert facts["gap"] == "inf"
    assert {bounds["gap"] for bounds in facts["bounds"]} == {"inf"}


@CLASSES
def test_fit_command_reports_it_and_exits_with_3(files, tmp_path, classes):
    _, data = files(3, classes)
    options = [
        "fit",
        str(data),
        "--C",
        "inf",
        "--p",
        "3",
        "--max-time",
        str(EXPIRED),
        "-o",
        str(tmp_path / "again.model"),
    ]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 3
    assert "nothing is proved" in result.output
    assert "weights for" not in result.output
    result = CliRunner().invoke(app, [*options, "--json"])
    assert result.exit_code == 3
    assert json.loads(result.output)["nothing_proved"].startswith("nothing is proved")


@KINDS
@CLASSES
def test_report_states_that_nothing_is_proved(tmp_path, kind, classes):
    model, X, y = stopped(kind, classes)
    page = tmp_path / "page.html"
    assert write_report(model, X, y, page).outcome is Outcome.NOTHING_PROVED
    text = page.read_text(encoding="utf-8")
    assert "Nothing is proved" in text
    assert "none, nothing is proved" in text
    assert "holds" not in text
    assert "nan" not in text


def test_report_command_reports_it_and_exits_with_3(files, tmp_path):
    path, data = files(3, 2)
    result = CliRunner().invoke(app, ["report", str(path), str(data), "-o", str(tmp_path / "page.html")])
    assert result.exit_code == 3
    assert "nothing is proved" in result.output
    assert "verified" not in result.output


@KINDS
def test_bounds_display_refuses_it(kind):
    with pytest.raises(ValueError, match="nothing is proved"):
        BoundsDisplay.from_estimator(stopped(kind)[0])


def test_exported_json_records_it(tmp_path):
    to_json(stopped(3)[0], tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert record["decisions"][0]["bounds"]["nothing_proved"] is True


def test_soft_margins_without_dual_weights_have_a_report(tmp_path):
    X, y = labelled()
    model = MaxMarginClassifier(p=3, max_time=EXPIRED, random_state=0).fit(X, y)
    assert all(part.support.size == 0 for part in model.certificate_.certificates)
    assert write_report(model, X, y, tmp_path / "page.html").outcome is Outcome.HOLDS
