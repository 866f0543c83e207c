"""The parameter `algorithm`: from a name to an object, and the problems that each algorithm refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..algorithms import (
    ALGORITHMS,
    CRAMMA,
    KERNEL_ALGORITHMS,
    MICRA,
    Algorithm,
    Decomposition,
    FixedDirectionalMargin,
    LocalPerceptron,
)
from ..certificates.certificate import INTERCEPT
from ..fit.streaming import streams
from ..problem.problem import Problem

NOT_FOR_STREAMS = {
    "mpu": "it takes back what it has learnt from a pattern when the pattern comes again",
    "dcd": "it moves the dual weight of a pattern a little every time the pattern comes",
    "cutting-plane": "every plane is made of all patterns",
    "lp": "a linear program is one of all patterns",
    "fmp": "it comes to its margin only in many passes",
    "ima": "it goes from margin to margin, each found in many passes",
    "pegasos": "it draws patterns at random from all of them, and its steps depend on how many there are",
}
EXAMPLE_RATES = {
    "cramma": "CRAMMA(eta=0.1)",
    "micra": "MICRA(eta=0.3)",
    "fixed-margin": "FixedDirectionalMargin(beta=0.01, eta=0.1)",
}


def linear_algorithm(algorithm: Any) -> Algorithm | None:
    """Return the algorithm of a linear classifier; None for "auto"."""
    if isinstance(algorithm, str) and algorithm == "auto":
        return None
    algorithm = _resolve(algorithm, ALGORITHMS, ALGORITHMS, "MPU()", Algorithm)
    if algorithm.schedule not in algorithm.schedules:
        raise ValueError(
            f"{algorithm.name} has the schedules {', '.join(map(repr, algorithm.schedules))}; "
            f"got {algorithm.schedule!r}."
        )
    return algorithm


def check_solves(algorithm: Algorithm | None, problem: Problem) -> None:
    """Refuse a linear problem that the algorithm does not solve, and name the algorithms that do."""
    instead = None if algorithm is None else algorithm.refuses(problem)
    if algorithm is None or instead is None:
        return
    power = "" if problem.power == 2 else ", the norm to the first power"
    described = f"loss={problem.loss!r} with C={problem.C:g}, p={problem.p:g}{power}"
    solvers = [name for name, cls in ALGORITHMS.items() if cls().refuses(problem) is None]
    raise ValueError(
        f"algorithm {algorithm.name!r} does not solve {described} and {INTERCEPT[problem.intercept]}: use {instead}, "
        f"or another algorithm ({', '.join(solvers) or 'none solves it'})."
    )


def kernel_algorithm(algorithm: Any, problem: Problem) -> Algorithm | Decomposition:
    """Return the algorithm of a kernel classifier; "auto" is the decomposition."""
    if isinstance(algorithm, str) and algorithm == "auto":
        algorithm = Decomposition.name
    algorithm = _resolve(
        algorithm, KERNEL_ALGORITHMS, KERNEL_ALGORITHMS, "PUMMA()", Algorithm | Decomposition
    )
    if isinstance(algorithm, Algorithm) and algorithm.refuses_kernels() is not None:
        raise ValueError(
            f"algorithm {algorithm.name!r} does not work with kernels: use {algorithm.refuses_kernels()}."
        )
    instead = algorithm.refuses(problem)
    if instead is not None:
        raise ValueError(
            f"algorithm {algorithm.name!r} does not solve loss={problem.loss!r} with C={problem.C:g}: use {instead}, "
            'or algorithm="auto".'
        )
    return algorithm


def stream_algorithm(algorithm: Any, problem: Problem) -> Algorithm:
    """Return the algorithm of a stream; "auto" is the Perceptron with a margin in each row's own measure."""
    suitable = [name for name, cls in ALGORITHMS.items() if streams(cls)]
    if isinstance(algorithm, str) and algorithm == "auto":
        algorithm = LocalPerceptron.name
    algorithm = _resolve(algorithm, ALGORITHMS, suitable, "ALMA()", Algorithm)
    if not streams(type(algorithm)):
        reason = NOT_FOR_STREAMS.get(algorithm.name, "it needs a pattern more than once")
        raise ValueError(
            f"algorithm {algorithm.name!r} cannot learn from a stream, which brings a pattern only once: "
            f"{reason}. Use MaxMarginClassifier, or one of {', '.join(map(repr, suitable))}."
        )
    if isinstance(algorithm, FixedDirectionalMargin) and algorithm.beta is None:
        raise ValueError(
            "fixed-margin without beta takes a share of a margin found by a run over all patterns, which a "
            "stream has not: give the margin to reach, FixedDirectionalMargin(beta=0.01) for instance."
        )
    if isinstance(algorithm, CRAMMA | MICRA | FixedDirectionalMargin) and algorithm.eta is None:
        raise ValueError(
            f"{algorithm.name} without eta takes its rate from a bound on the margin that a run over all patterns "
            "finds, which a stream has not, and no theorem covers a rate without one: give a rate, "
            f"{EXAMPLE_RATES[algorithm.name]} for instance."
        )
    instead = algorithm.refuses(problem)
    if instead is not None:
        raise ValueError(f"algorithm {algorithm.name!r} needs {instead}.")
    return algorithm


def _resolve(
    algorithm: Any, registry: Mapping[str, Any], listed: Iterable[str], example: str, kinds: Any
) -> Any:
    """Return the algorithm of a name in the registry, or the object itself.

    Parameters
    ----------
    algorithm : str or object
    registry : dict
        Classes by name.
    listed : iterable of str
        Names for the error message.
    example : str
        An object for the error message.
    kinds : type or union of types
        Of objects that are accepted.
    """
    if isinstance(algorithm, str):
        if algorithm not in registry:
            raise ValueError(
                f"algorithm must be 'auto', one of {', '.join(map(repr, listed))}, or an object such as {example}; "
                f"got {algorithm!r}."
            )
        return registry[algorithm]()
    if not isinstance(algorithm, kinds):
        raise ValueError(f"algorithm must be a name or a rule object such as {example}; got {algorithm!r}.")
    return algorithm
