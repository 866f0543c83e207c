"""A part of `make fuzz`: some mutants of each format, and random problems."""

from __future__ import annotations

import pytest
from effort import interpreted, thorough
from fuzzing import TARGETS, trial

COUNTS = dict.fromkeys(TARGETS, 60)


@thorough
@pytest.mark.parametrize("name", [name for name in TARGETS if name != "fits"])
def test_mutants_are_refused_in_words_or_are_what_they_seem(name, tmp_path):
    target = TARGETS[name]()
    for number in range(COUNTS[name]):
        assert trial(target, 0, number, tmp_path), number


@interpreted  # compilation of many algorithms for many kinds of rows takes minutes
def test_random_problems_are_refused_in_words_or_their_bounds_hold(tmp_path):
    for number in range(40):
        assert trial(TARGETS["fits"](), 0, number, tmp_path), number
