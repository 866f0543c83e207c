"""Skeleton of a command: options from its signature and docstring, errors in one sentence, printing, exit codes.

Of other packages, it imports only typer, so that help is fast.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer import Argument, Option

from ..numerics.progress import INTERRUPTED, ReadingStoppedError

# exit codes: stopped before the tolerance, or undecided; bad input or a failed check
STOPPED, BAD_INPUT = 3, 2


class CommonOptions:
    """Table of options of several commands, never instantiated; those from C to n_jobs are parameters of estimators.

    An option that is not typed is left to the function that a command calls.

    Parameters
    ----------
    model : Path
        A file that `maxmargin fit` wrote.
    data : Path
        svmlight text, .csv, .npz, .parquet or .arrow; text also as .gz, .bz2 or .xz.
    C : float, default=1.0
        Weight of the losses; inf is the hard margin.
    loss : str, default=squared_hinge
        squared_hinge or hinge.
    p : float or str, default=2
        Norm of distances: 1 to inf, or log, which is max(2, 2 ln d) for d features.
    norm_power : int, default=2
        Regulariser: 2 for half the squared norm of w, 1 for the norm itself.
    tol : float, default=0.001
        Certified relative gap at which the fit ends.
    kernel : str
        linear, poly, rbf, sigmoid, or another of scikit-learn's pairwise kernels.
    gamma : float or str, default=scale
        Parameter of the kernel: a number, scale or auto.
    degree : int, default=3
        Degree of the kernel poly.
    coef0 : float, default=0.0
        Constant term of the kernels poly and sigmoid.
    multi_class : str, default=ovr
        With --kernel: ovr, each class against the rest, or ovo, each pair of classes.
    cache_size : float, default=200
        With --kernel: megabytes of cached kernel rows.
    algorithm : str, default=auto
        auto, or a name: dcd, mpu, pumma, perceptron and others.
    fit_intercept : bool, default=--fit-intercept
        Whether there is an intercept.
    intercept_scaling : float
        Regularise the intercept, as the weight of a constant feature of this value; by default it is free.
    class_weight : str
        balanced: the weights of each class have the same sum.
    max_iter : int, default=1000
        Maximum number of rounds.
    max_time : float
        Time limit in seconds; the best model so far is kept.
    seed : int
        Seed of the order of the rows; by default another order in each run.
    memory : str
        Memory that the fit may use, as in 2GB: larger data are read in passes. By default the data are in memory if
        they fit, and half of the free memory is used if not.
    cache_dir : str
        The folder for rows that are read in passes; by default maxmargin in the user's cache folder.
    n_jobs : int
        Number of classes solved at the same time; by default 1.
    n_features : int
        Number of columns, if not all of them occur in a sparse file.
    label : str
        The label column of a .csv, .parquet or .arrow file.
    columns : list of str
        Feature columns of a .csv, .parquet or .arrow file, as in a,b,c; all others are left out.
    drop : list of str
        Columns of a .csv, .parquet or .arrow file to leave out, as in id,date.
    header : bool
        Whether the first line of a text table holds the names of the columns; by default guessed. Columns without names
        are x1, x2 and so on.
    delimiter : str
        The sign between columns of a text table: comma, semicolon, tab, space (runs of spaces and tabs) or another one;
        by default guessed.
    as_json : bool
        Print JSON on standard output.
    quiet : bool
        Print nothing.
    """


COLUMNS = ("label", "columns", "drop", "header", "delimiter")
KINDS: dict[str, Any] = {  # of options, by their types in the table; the estimators read "float or str"
    "float": float, "int": int, "str": str, "bool": bool, "list of str": list[str], "float or str": Any,
}  # fmt: skip
FIELDS = {"seed": "random_state"}  # parameters of the estimators that are not called as their options
FLAGS = {  # of options that are not called as their parameters
    "C": "--C",
    "output": "--output -o",
    "as_json": "--json",
    "quiet": "--quiet -q",
    "header": "--header/--no-header",
    "fit_intercept": "--fit-intercept/--no-intercept",
}


def number_or_word(value: Any) -> Any:
    """Return a number, or else the word, which the estimator knows or refuses."""
    try:
        return float(value)
    except ValueError:
        return value


SHOWN: dict[str, dict[str, Any]] = {  # further keywords of `typer.Option`
    "p": {"parser": number_or_word, "metavar": "NORM"},
    "gamma": {"parser": number_or_word, "metavar": "NUMBER"},
    "seed": {"min": 0},
    "n_features": {"min": 1},
}


class Result(NamedTuple):
    """Result of a command.

    Attributes
    ----------
    facts : dict
        Plain values, for ``--json``.
    lines : iterable of str
        The same as text.
    code : int
        Of the exit.
    """

    facts: dict[str, Any]
    lines: Iterable[str]
    code: int = 0


def dashed(name: str) -> str:
    """Return the option of a parameter as it is typed."""
    return f"--{name.replace('_', '-')}"


def command(*names: str) -> Callable[[Callable[..., Result | None]], Any]:
    """Make a function a command: errors of the input are one sentence, and its result is printed.

    Its positional parameters become arguments, the others options. Their help texts are those of its docstring, or else
    of `CommonOptions`.

    Parameters
    ----------
    *names : str
        Options of `CommonOptions` that the function receives in its ``**parameters``, by the names of the estimators
        and only where they are typed. They stand before `n_features`, in the order of the table.
    """
    options = [name for name in TABLE if name in names]

    def decorate(function: Callable[..., Result | None]) -> Any:
        @wraps(function)
        def run(**given: Any) -> None:
            for name in names:
                value = given.pop(name)
                if value is not None:
                    given[FIELDS.get(name, name)] = value
            with errors_in_one_sentence(), notices_as_lines():
                if "drop" in given:
                    given["columns"] = column_options(given)
                result = function(**given)
                if result is not None and given.get("as_json"):
                    typer.echo(json_text(result.facts))
                elif result is not None and not given.get("quiet"):
                    typer.echo("\n".join(result.lines))
            if result is not None and result.code:
                raise typer.Exit(result.code)

        signature = _signature(function, options)
        run.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue] # typer reads it
        run.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()}
        paragraphs = _documented(function)[0].split("\n\n")
        run.__doc__ = "\n\n".join(" ".join(one.split()) for one in paragraphs)  # typer keeps line ends
        return run

    return decorate


def column_options(given: dict[str, Any]) -> Any:
    """Take the options about columns out of those that are given, as `readers.Expected` has them."""
    from ..readers import Expected, delimiter_of  # slow

    label, use, drop, header, sign = (given.pop(name) for name in COLUMNS)
    delimiter = None if sign is None else delimiter_of(sign)
    return Expected(label=label, use=use or (), drop=drop or (), header=header, delimiter=delimiter)


def _signature(function: Callable[..., Any], options: list[str]) -> inspect.Signature:
    """Return the parameters of a command for typer, with those that `columns` and ``**parameters`` stand for."""
    found: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        for one in (*(options if name == "n_features" else ()), *(COLUMNS if name == "columns" else ())):
            kind = KINDS[TABLE[one][0]] | None
            found.append(
                inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            )
        if name != "columns" and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            found.append(parameter)
    shown = TABLE | _documented(function)[1]
    return inspect.Signature([_for_typer(one, shown.get(one.name, ("", {}))[1]) for one in found])


def _for_typer(parameter: inspect.Parameter, shown: dict[str, Any]) -> inspect.Parameter:
    """Return a parameter of a command as an argument or an option with these keywords (`_documented`)."""
    name = parameter.name
    if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
        made: Any = Argument(**shown)
    else:
        # typer would give a flag a second name, --no-name
        flags = dashed(name) if parameter.default is False else ""
        made = Option(*FLAGS.get(name, flags).split(), **shown, **SHOWN.get(name, {}))
    kind = inspect.Parameter.KEYWORD_ONLY
    return parameter.replace(kind=kind, annotation=Annotated[parameter.annotation, made])


def _documented(described: Any) -> tuple[str, dict[str, tuple[str, dict[str, str]]]]:
    """Return the docstring of a function or class without its parameters, and the type of each and keywords for typer.

    The keywords are `help`, the text about the parameter, and `show_default`, where a default is named.
    """
    summary, _, parameters = (inspect.getdoc(described) or "").partition("\n\nParameters\n----------\n")
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for name, type_, text in re.findall(r"^(\w+) : (.*)\n((?: +.*\n?)+)", parameters, re.MULTILINE):
        kind, _, default = type_.partition(", default=")
        found[name] = kind, {"help": " ".join(text.split())} | ({"show_default": default} if default else {})
    return summary, found


@contextmanager
def notices_as_lines() -> Iterator[None]:
    """Print each warning of a command once, as a line on standard error, at its end."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for text in dict.fromkeys(str(one.message) for one in found):
                typer.echo(f"maxmargin: {text}", err=True)


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """Print an error as one line on standard error; exit with code 2, or with that of Ctrl-C or of a time limit."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output has gone, as `head` does: no fault of the input
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise _end(f"{place}{error.strerror or error}") from None
    except MemoryError as error:
        raise _end(f"there is not enough memory ({error}); use fewer rows or sparse data") from None
    except KeyboardInterrupt:
        raise _end("interrupted; every file is complete or was not written.", INTERRUPTED) from None
    except ReadingStoppedError as error:
        raise _end(str(error), STOPPED) from None
    except (ValueError, ImportError) as error:  # the latter for packages that are optional
        raise _end(str(error)) from None


def _end(message: str, code: int = BAD_INPUT) -> typer.Exit:
    """Print a message as one line on standard error; return what ends the process with this code."""
    typer.echo(f"maxmargin: {' '.join(message.split())}", err=True)
    return typer.Exit(code)


def json_text(facts: dict[str, Any]) -> str:
    """Return one JSON object; numbers that JSON does not know are the strings "inf", "-inf" and "nan"."""
    return json.dumps(_plain(facts), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, Path):
        return str(value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


TABLE = _documented(CommonOptions)[1]
ESTIMATOR_OPTIONS = list(TABLE)[list(TABLE).index("C") : list(TABLE).index("n_jobs") + 1]
