"""Options that several commands share, exit codes, and errors in one sentence. Imports only typer: help is fast."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer import Argument, BadParameter, Context, Option

# exit codes: stopped before the tolerance; bad input or a failed check; Ctrl-C, 128 + SIGINT as shells have it
STOPPED, BAD_INPUT, INTERRUPTED = 3, 2, 130
Command = TypeVar("Command", bound=Callable[..., None])


def parse_norm(p: Any) -> float | str:
    """Return the exponent of a norm: a number, or "log"."""
    if p == "log":
        return p
    try:
        return float(p)
    except ValueError:
        raise BadParameter(f"--p must be a number from 1 to inf, or log; got {p!r}.") from None


def parse_gamma(gamma: Any) -> float | str:
    """Return the gamma of a kernel: a number, "scale" or "auto"."""
    if gamma in ("scale", "auto"):
        return gamma
    try:
        return float(gamma)
    except ValueError:
        raise BadParameter(f"--gamma must be a number, scale or auto; got {gamma!r}.") from None


# options about data files and output

Data = Annotated[
    Path, Argument(help="svmlight text, .csv, .npz, .parquet or .arrow; text also as .gz, .bz2 or .xz.")
]
Model = Annotated[Path, Argument(help="A file that `maxmargin fit` wrote.")]
Columns = Annotated[int | None, Option(help="Columns of a sparse file, where not all of them occur in it.")]
Label = Annotated[str | None, Option(help="The label column of a .csv, .parquet or .arrow file.")]
Use = Annotated[
    list[str] | None,
    Option("--columns", help="Feature columns of such a file, as in a,b,c; all others are left out."),
]
Drop = Annotated[
    list[str] | None, Option("--drop", help="Columns of such a file that are left out, as in id,date.")
]
AsJson = Annotated[bool, Option("--json", help="One JSON object on standard output.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Nothing is printed.")]

# Options that are parameters of the estimators: annotation and default. They are written here and not read off the
# estimators, whose import takes seconds, while help must not need one; tests compare the defaults. A command that
# says something else of such a parameter has one of the same name of its own.

ESTIMATOR_OPTIONS: dict[str, tuple[Any, Any]] = {
    "C": (Annotated[float, Option("--C", help="Weight of the losses; inf is the hard margin.")], 1.0),
    "loss": (Annotated[str, Option(help="squared_hinge or hinge.")], "squared_hinge"),
    "p": (
        Annotated[
            Any,
            Option(
                parser=parse_norm,
                metavar="NORM",
                help="Norm of distances: 1 to inf, or log, max(2, 2 ln d).",
            ),
        ],
        2,
    ),
    "norm_power": (Annotated[int, Option(help="2: half the squared norm of w; 1: the norm itself.")], 2),
    "tol": (Annotated[float, Option(help="Certified relative gap at which the fit ends.")], 1e-3),
    "kernel": (
        Annotated[
            str | None,
            Option(help="linear, poly, rbf, sigmoid, or another of scikit-learn's pairwise kernels."),
        ],
        None,
    ),
    "gamma": (
        Annotated[
            Any, Option(parser=parse_gamma, metavar="NUMBER", help="Of the kernel: a number, scale or auto.")
        ],
        "scale",
    ),
    "degree": (Annotated[int, Option(help="Of the kernel poly.")], 3),
    "coef0": (Annotated[float, Option(help="Of the kernels poly and sigmoid.")], 0.0),
    "multi_class": (
        Annotated[
            str, Option(help="With --kernel: ovr, each class against the rest, or ovo, against each other.")
        ],
        "ovr",
    ),
    "cache_size": (Annotated[float, Option(help="With --kernel: megabytes for its rows.")], 200),
    "algorithm": (
        Annotated[str, Option(help="auto, or a name: dcd, mpu, pumma, perceptron and others.")],
        "auto",
    ),
    "fit_intercept": (
        Annotated[bool, Option("--fit-intercept/--no-intercept", help="Is there an intercept?")],
        True,
    ),
    "intercept": (Annotated[str, Option(help="free, or augmented (regularised).")], "free"),
    "intercept_scaling": (Annotated[float, Option(help="With an augmented intercept.")], 1.0),
    "class_weight": (
        Annotated[str | None, Option(help="balanced: every class counts as much as any other.")],
        None,
    ),
    "max_iter": (Annotated[int, Option(help="Most rounds.")], 1000),
    "max_time": (
        Annotated[float | None, Option(help="Seconds; then the best model so far is kept.")],
        None,
    ),
    "seed": (Annotated[int | None, Option(help="Order of presentation; none takes a fresh one.")], None),
    "n_jobs": (Annotated[int | None, Option(help="Classes solved at the same time.")], None),
}


def takes(*names: str) -> Callable[[Command], Command]:
    """Give a command options of `ESTIMATOR_OPTIONS`, which it receives in its ``**parameters``.

    They stand before `n_features`, with the command's own options of such names, in the order of the table.
    """

    def decorate(command: Command) -> Command:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        del own["parameters"]
        parameters = []
        for name, (annotation, default) in ESTIMATOR_OPTIONS.items():
            if name in own:
                parameters.append(own.pop(name))
            elif name in names:
                kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
                parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
        place = list(own).index("n_features")
        others = list(own.values())
        signature = inspect.Signature([*others[:place], *parameters, *others[place:]])
        command.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess] # typer reads it
        return command

    return decorate


def given_options(context: Context) -> dict[str, Any]:
    """Return the options that the command line sets, without those left at their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {
        name: value
        for name, value in context.params.items()
        if (source := sources[name]) is not None and source.name == "COMMANDLINE"
    }


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """Print what is wrong with the input as one line on standard error, and exit with code 2."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output has gone, as `head` does: no fault of the input
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise _bad_input(f"{place}{error.strerror or error}") from None
    except MemoryError as error:
        raise _bad_input(f"the memory was used up ({error}); use fewer rows or sparse data") from None
    except ValueError as error:
        raise _bad_input(str(error)) from None


def _bad_input(message: str) -> typer.Exit:
    typer.echo(f"maxmargin: {' '.join(message.split())}", err=True)
    return typer.Exit(BAD_INPUT)
