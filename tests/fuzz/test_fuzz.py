"""A part of `make fuzz`: some hundred mutants of each format, and random problems, in this process."""

from __future__ import annotations

import warnings
from random import Random

import pytest
from effort import examples, interpreted, thorough
from every_target import COLUMNAR, DATA, MODELS, PROOFS, target_of

TRIALS = {**dict.fromkeys((*DATA, *COLUMNAR, *MODELS, *PROOFS), 200), "commands": 20}


@thorough
@pytest.mark.parametrize("name", TRIALS)
def test_mutants_are_refused_in_words_or_are_what_they_seem(name, tmp_path):
    run(name, examples(TRIALS[name], 10 * TRIALS[name]), tmp_path)


@interpreted  # compilation of many algorithms for many kinds of rows takes minutes
def test_random_problems_are_refused_in_words_or_their_bounds_hold(tmp_path):
    run("fits", 40, tmp_path)


def run(name, count, tmp_path):
    """Run the first trials of a target."""
    target = target_of(name)
    for number in range(count):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outcome = target.trial(Random(f"0 {name} {number}"), tmp_path)
        assert outcome, number
