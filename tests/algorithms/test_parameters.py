"""Unsupported problems and invalid parameters of every algorithm are refused with a remedy."""

from __future__ import annotations

import re

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, Problem
from maxmargin.algorithms import ALGORITHMS

OPTIONS = {"none": {"fit_intercept": False}, "free": {}, "augmented": {"intercept_scaling": 1.0}}
REMEDIES = {  # parameters that the words of a remedy ask for
    'loss="hinge" with a finite C': {"loss": "hinge", "C": 1.0},
    'loss="squared_hinge"': {"loss": "squared_hinge"},
    'loss="hinge"': {"loss": "hinge"},
    "C=inf": {"C": np.inf},
    "a finite C": {"C": 1.0},
    "fit_intercept=True without intercept_scaling": {"intercept": "free"},
    "norm_power=2": {"power": 2},
    "norm_power=1": {"power": 1},
    "p=2": {"p": 2.0},
    "p=1": {"p": 1.0},
    "p=inf": {"p": np.inf},
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_unsupported_problems_are_refused_with_a_valid_remedy(name):
    """Before the fit; the parameters of the remedy remove the reason of the refusal."""
    algorithm = ALGORITHMS[name]()
    for kind, options in OPTIONS.items():
        for loss in ("hinge", "squared_hinge"):
            for C in (1.0, np.inf):
                remedy = algorithm.refuses(Problem(loss, C, intercept=kind))
                if remedy is None:
                    continue
                model = MaxMarginClassifier(loss=loss, C=C, algorithm=name, max_iter=2, **options)
                words = f"algorithm '{name}' does not solve loss='{loss}'"
                with pytest.raises(ValueError, match=words) as caught:
                    model.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
                assert f"use {remedy}, or another algorithm" in str(caught.value)
                # it does not recommend itself
                assert not re.search(f"algorithm.*[ (]{name}[,)]", str(caught.value))
                phrases = [phrase for phrase in REMEDIES if phrase in remedy]
                phrases = [
                    one for one in phrases if not any(one in other for other in phrases if other != one)
                ]
                assert phrases
                for phrase in phrases:
                    changed = {"loss": loss, "C": C, "intercept": kind, **REMEDIES[phrase]}
                    again = algorithm.refuses(Problem(**changed))
                    assert again is None or (again != remedy and phrase not in again)


UNDEFINED = [("loss", "log"), ("C", 0.0), ("p", 0.5), ("power", 3), ("intercept_scaling", 0.0)]


@pytest.mark.parametrize(("name", "value"), UNDEFINED)
def test_problems_that_are_not_defined_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        Problem(**{"loss": "hinge", "C": 1.0, name: value})


def test_refusals_name_algorithms_for_the_norm():
    for name, problem, remedy in (
        ("ima", {"p": np.inf}, None),
        ("ima", {"p": 1.0, "power": 1}, "norm_power=2"),
        ("flexible-ima", {"p": np.inf, "C": np.inf}, "C"),
        ("alma", {"p": np.inf}, 'p="log"'),
        ("pumma", {"p": 1.5}, "ima"),
        ("pumma", {"p": 6.8}, None),
        ("dcd", {"p": np.inf}, "auto"),
        ("newton", {"p": 3.0}, "p=2 with norm_power=2"),
    ):
        refusal = ALGORITHMS[name]().refuses(Problem(**{"loss": "squared_hinge", "C": 1.0, **problem}))
        assert refusal is None if remedy is None else remedy in refusal


def test_algorithms_without_a_kernel_form_name_an_alternative():
    without = {"flexible-ima", "lp", "interior-point", "proximal-point", "newton", "proximal-newton"}
    assert {name for name, cls in ALGORITHMS.items() if not cls.kernelised} == without
    for name in ALGORITHMS:
        refusal = ALGORITHMS[name]().refuses_kernels()
        assert (refusal is None) == (name not in without)
        assert refusal is None or ('algorithm="' in refusal and name not in refusal)
    with pytest.raises(ValueError, match=r"newton.*pumma"):
        KernelMaxMarginClassifier(algorithm=mm.algorithms.Newton()).fit([[0.0], [1.0]], [0, 1])


POSITIVE = "must be a positive"
ACCURACY = "must lie above 0 and be at most 1"
INVALID = [
    (mm.algorithms.MPU, {"delta": 0.0}, "delta must lie between 0 and 1"),
    (mm.algorithms.MPU, {"delta": "x"}, "delta must be a number"),
    (mm.algorithms.MPU, {"delta_b": 1.0}, r"delta_b must be above 1 \(in units of R\^2\)"),
    (mm.algorithms.MPU, {"c_bar": 0.5}, "c_bar must be at least 1"),
    (mm.algorithms.MPU, {"Nep1": 0}, "Nep1 and Nep2 must be at least 1"),
    (mm.algorithms.MPU, {"schedule": "shrinking"}, "schedule of mpu must be one of .'gap', 'two-level', "),
    (mm.algorithms.MPU, {"shuffle": 0}, "shuffle must be True or False"),
    (mm.algorithms.DualCoordinateDescent, {"schedule": "shrinking", "eps": 0.0}, POSITIVE),
    (
        mm.algorithms.DualCoordinateDescent,
        {"eps": 0.1, "schedule": "gap"},
        'criterion of schedule="shrinking"',
    ),
    (mm.algorithms.Perceptron, {"b": -1.0}, r"b, in units of R\^2, must be at least 0"),
    (mm.algorithms.Perceptron, {"shuffle": "no"}, "shuffle must be True or False"),
    (mm.algorithms.ALMA, {"alpha": 0.0}, ACCURACY),
    (mm.algorithms.ALMA, {"C": 0.0}, POSITIVE),
    (mm.algorithms.ALMA, {"normalise": 0.0}, "normalise must be True or False"),
    (mm.algorithms.CRAMMA, {"beta": 0.0}, r"beta must be a positive number \(in units of R\)"),
    (mm.algorithms.CRAMMA, {"eta": np.inf}, POSITIVE),
    (mm.algorithms.MICRA, {"zeta": 1.5}, "zeta must lie between 0 and 1"),
    (mm.algorithms.FixedDirectionalMargin, {"beta": -0.1}, POSITIVE),
    (mm.algorithms.AggressiveROMMA, {"delta": 0.0}, ACCURACY),
    (mm.algorithms.PUMMA, {"halving": 2}, "halving must be True or False"),
    (mm.algorithms.FMP, {"gamma": -1.0}, "gamma must be a number of at least 0"),
    (mm.algorithms.FMP, {"constant": 0.0}, POSITIVE),
    (mm.algorithms.IMA, {"alpha": 1.0}, "alpha must lie between 0 and 1"),
    (mm.algorithms.IMA, {"increment": 0.0}, POSITIVE),
    (mm.algorithms.IMA, {"rule": "middle"}, "rule must be 'balanced' or 'paper'"),
    (mm.algorithms.IMA, {"budget": 0}, "budget must be a whole number"),
    (mm.algorithms.Pegasos, {"k": 2.5}, "k must be a whole number of patterns, at least 1"),
    (mm.algorithms.Pegasos, {"T": True}, "T must be a whole number of mini-batches, at least 1, or None"),
    (mm.algorithms.Pegasos, {"projection": "yes"}, "projection must be a bool"),
]


@pytest.mark.parametrize(("cls", "options", "message"), INVALID)
def test_invalid_parameters_are_refused_with_their_value(cls, options, message):
    """By the algorithm itself or, for schedules, by the fit."""
    *_, value = options.values()
    with pytest.raises(ValueError, match=f"{message}.*got .*{re.escape(repr(value))}"):
        MaxMarginClassifier(algorithm=cls(**options)).fit([[0.0], [1.0]], [0, 1])
