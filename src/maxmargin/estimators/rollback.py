"""A fit that fails leaves its estimator as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_by(failure: type[BaseException], estimator: Any) -> Iterator[None]:
    """Restore all attributes of the estimator if the block raises this.

    Parameters
    ----------
    failure : type
        BaseException, or Exception where Ctrl-C keeps the state reached so far.
    estimator : object
    """
    before = dict(vars(estimator))
    try:
        yield
    except failure:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
