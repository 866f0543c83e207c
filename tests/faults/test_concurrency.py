"""Fits at the same time, in threads and processes, have the model of one fit."""

from __future__ import annotations

import json
import os

import pytest
import together
from processes import run_python


def same(how, count, *names, **environment):
    """Tell whether fits at the same time have the result of one by itself, bit for bit."""
    found = json.loads(run_python(together.__file__, how, count, *names, **environment))
    return bool(found) and all(all(some) for some in found.values())


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")
def test_threads_and_forks_after_a_fit_have_the_model_of_one_fit():
    assert same("threads", 8, "squared hinge", "kernel")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["threads", "forks", "loky"])
def test_eight_fits_at_the_same_time_from_an_empty_cache_have_the_model_of_one_fit(how, tmp_path):
    if how == "forks" and not hasattr(os, "fork"):
        pytest.skip("processes are not forked on this system")
    assert same(how, 8, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
