"""Fits that end before a bound is found: every output states that nothing is proved."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from command import run
from effort import interpreted

from maxmargin import (
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    Problem,
    Status,
    plots,
    save,
    support_report,
    verify,
)
from maxmargin.algorithms import ALGORITHMS

INF = np.inf
LOSSES = ("hinge", "squared_hinge")
EXPIRED = 1e-9  # seconds: expired before the first check of the clock
WORDS = "nothing is proved"


def stopped(classes=2) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a kernel model stopped by its time limit, and its data; linear models always have a point."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = np.argmax(X @ rng.standard_normal((4, classes)), axis=1)
    model = KernelMaxMarginClassifier(C=INF, kernel="linear", max_time=EXPIRED, random_state=0)
    return model.fit(X, y), X, y


@pytest.mark.parametrize("classes", [2, 3])
def test_gap_is_infinite_and_text_states_that_nothing_is_proved(classes):
    model, X, y = stopped(classes)
    assert model.status_ is Status.MAX_TIME
    for certificate in (model.certificate_, verify(model, X, y)):
        assert certificate.gap == INF
        assert certificate.proves_nothing
        assert WORDS in repr(certificate)
        for part in certificate.certificates:
            assert (part.lower, part.upper, part.gap) == (-INF, INF, INF)
            assert WORDS in str(part)
    assert all(report.gap == INF for report in model.history_)
    assert WORDS in str(support_report(model, X, y))


@interpreted
@pytest.mark.parametrize(("p", "C"), [*product((1, 1.5, 2, 3, INF), (1.0, 1e6, INF))])
@pytest.mark.parametrize("algorithm", ["auto", "ima", "interior-point", "fmp"])
def test_expired_linear_fits_have_a_direction_and_a_bound(algorithm, p, C):
    X, y = stopped()[1:]
    for loss, power in product(LOSSES, (1, 2)) if C < INF else [(LOSSES[0], 2)]:
        model = MaxMarginClassifier(
            C=C, p=p, loss=loss, norm_power=power, algorithm=algorithm, max_time=EXPIRED, random_state=0
        )
        problem = Problem(loss, C, p=p, power=power, intercept="free")
        if algorithm != "auto" and ALGORITHMS[algorithm]().refuses(problem) is not None:
            continue
        model.fit(X, y)
        assert model.status_ is Status.MAX_TIME
        assert model.coef_.any()
        assert model.certificate_.gap < INF


@pytest.mark.parametrize(("loss", "C"), [*product(LOSSES, [1.0, INF])])
def test_gaps_are_never_nan(C, loss):
    values = [-INF, -1e308, -1.0, -0.0, 0.0, 5e-324, 1.0, 1e308, INF, np.nan]
    for lower, upper in product(values, values):
        gap = Problem(loss, C).gap(lower, upper)
        assert not np.isnan(gap)
        assert gap == INF or lower > 0.0 or upper < INF


def test_certificates_with_one_bound_prove_something():
    before, X, y = stopped()
    model: Any = MaxMarginClassifier(C=INF, p=3, random_state=0, callback=lambda report: True).fit(X, y)
    assert not model.certificate_.proves_nothing
    assert WORDS not in str(model.certificate_)
    several = type(MaxMarginClassifier().fit(np.eye(3), [0, 1, 2]).certificate_)
    mixed = several((0, 1), (*model.certificate_.certificates, *before.certificate_.certificates))
    assert not mixed.proves_nothing
    assert mixed.gap == INF
    assert [(WORDS in line) for line in str(mixed).splitlines()] == [False, False, True]


@pytest.mark.parametrize("classes", [2, 3])
def test_commands_report_it_and_exit_with_3(tmp_path, classes):
    model, X, y = stopped(classes)
    path, data, page = (tmp_path / name for name in ("stopped.model", "data.csv", "page.html"))
    np.savetxt(data, np.column_stack([X, y]), "%.17g", ",", header="a,b,c,d,label", comments="")
    model.feature_names_in_ = np.array(list("abcd"), dtype=object)
    model.source_ = {"label": "label", "first_index": None}
    save(model, path)
    fit = [
        "fit",
        data,
        "--C",
        "inf",
        "--kernel",
        "rbf",
        "--max-time",
        EXPIRED,
        "-o",
        tmp_path / "again.model",
    ]
    for command in (["check", path, data], ["report", path, data, "-o", page], fit):
        result = run(*command)
        assert result.exit_code == 3
        assert WORDS in result.output
        assert "verified" not in result.output
    facts = json.loads(run("check", path, data, "--json").output)
    assert facts["verified"] is False
    assert facts["gap"] == "inf"
    assert {bounds["gap"] for bounds in facts["bounds"]} == {"inf"}
    text = page.read_text(encoding="utf-8")
    assert "Nothing is proved" in text
    assert "nan" not in text


def test_displays_refuse_it():
    model, _, _ = stopped()
    with pytest.raises(ValueError, match=WORDS):
        plots.BoundsDisplay.from_estimator(model)
