"""Parameters that classifiers have in common: checked when a fit begins, with a sentence that says what to do."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def check_parameters(model: Any) -> None:
    """C, tol, max_time, n_jobs, callback and the three parameters of the intercept.

    Raises
    ------
    ValueError
    """
    require_number("intercept_scaling", model.intercept_scaling)
    C, tol, max_time = model.C, model.tol, model.max_time
    if not isinstance(C, Real) or isinstance(C, bool) or not float(C) > 0.0:
        raise ValueError(f"C must be a positive number, or inf for the hard margin; got C={C!r}.")
    if not isinstance(tol, Real) or isinstance(tol, bool) or not 0.0 < float(tol) < np.inf:
        raise ValueError(
            f"tol must be positive: it is the certified gap, and a gap of 0 cannot be proved; got tol={tol!r}."
        )
    require_boolean("fit_intercept", model.fit_intercept)
    positive = isinstance(max_time, Real) and not isinstance(max_time, bool) and float(max_time) > 0.0
    if max_time is not None and not positive:
        raise ValueError(f"max_time must be a positive number of seconds, or None; got {max_time!r}.")
    if model.n_jobs is not None and not (
        isinstance(model.n_jobs, Integral) and not isinstance(model.n_jobs, bool) and model.n_jobs != 0
    ):
        raise ValueError(
            "n_jobs must be a whole number of threads, -1 for as many as there are processors, or None; "
            f"got {model.n_jobs!r}."
        )
    if model.callback is not None and not callable(model.callback):
        raise ValueError(f"callback must be a function of a report, or None; got {model.callback!r}.")
    if model.intercept not in ("free", "augmented"):
        raise ValueError(f'intercept must be "free" or "augmented"; got {model.intercept!r}.')


def require_number(name: str, value: Any) -> None:
    """A real number, and no boolean."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ValueError(f"{name} must be a number; got {name}={value!r}.")


def require_boolean(name: str, value: Any) -> None:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_seed(random_state: Any) -> None:
    """Refuse what is neither a seed nor a generator."""
    if random_state is None:
        return
    if not isinstance(random_state, Integral):
        check_random_state(random_state)
    elif random_state < 0:
        raise ValueError(f"random_state must be a whole number of at least 0; got {random_state!r}.")


def seeds(random_state: Any, size: int) -> np.ndarray:
    """A seed a class."""
    check_seed(random_state)
    if isinstance(random_state, Integral):  # its generator of old would take longer than a small fit's looks
        return np.random.SeedSequence(int(random_state)).generate_state(size)
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=size)
