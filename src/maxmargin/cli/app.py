"""The command line: its parser, errors in one sentence, printing, and exit codes.

Of other modules, it imports only such as load no numerical package, so that help is fast.
"""

from __future__ import annotations

import os
import sys
import warnings
from argparse import SUPPRESS, ArgumentParser, BooleanOptionalAction
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import getdoc
from pathlib import Path
from typing import Any, NoReturn

from .. import __version__
from ..numerics.progress import INTERRUPTED, ReadingStoppedError
from .compare import compare
from .export import export
from .fit import fit
from .models import check, predict, report
from .options import BAD_INPUT, EXIT_CODES, OPTIONS, STOPPED, flags_of, json_text, note
from .separate import separate

FILE = ("label", "use", "drop", "header", "delimiter")  # what the readers have to know of a file


COMMANDS = {  # their functions, arguments and options
    "fit": (
        fit, "data",
        "output C loss p norm_power tol kernel gamma multi_class algorithm fit_intercept intercept_scaling "
        "class_weight max_iter max_time random_state memory online n_features label use drop header delimiter",
    ),
    "predict": (predict, "model data", "output scores label use drop header delimiter as_json"),
    "check": (check, "model data", "proof label use drop header delimiter as_json"),
    "report": (report, "model data", "output label use drop header delimiter as_json"),
    "separate": (
        separate, "data",
        "bias p tol kernel gamma algorithm max_time memory n_features label use drop header delimiter as_json",
    ),
    "compare": (
        compare, "data",
        "algorithms C loss p norm_power tol fit_intercept intercept_scaling class_weight max_iter max_time "
        "random_state n_features label use drop header delimiter csv as_json",
    ),
    "export": (export, "model", "output to labels"),
}  # fmt: skip


def parser() -> ArgumentParser:
    """Return the parser of all commands; it leaves out what is not typed."""
    main = ArgumentParser(
        "maxmargin", description="Maximum-margin classification with a proof.", epilog=EXIT_CODES
    )
    main.add_argument("--version", action="version", version=f"maxmargin {__version__}")
    commands = main.add_subparsers(metavar="COMMAND", dest="command", required=True)
    for name, (function, arguments, options) in COMMANDS.items():
        text = " ".join((getdoc(function) or "").split())
        shown: dict[str, Any] = {"help": text.partition(". ")[0], "description": text, "epilog": EXIT_CODES}
        one = commands.add_parser(name, **shown, argument_default=SUPPRESS, allow_abbrev=False)
        for argument in arguments.split():
            kind, text = OPTIONS[argument]
            one.add_argument(argument, type=kind, help=text, metavar=argument.upper())
        for option in options.split():
            kind, text = OPTIONS[option]
            metavar = {Path: "FILE", str: "TEXT"}.get(kind, "NUMBER")
            settings: dict[str, Any] = {"type": kind, "metavar": metavar}
            if isinstance(kind, bool):
                settings = {"action": "store_true" if kind else "store_false"}
            elif kind is bool:
                settings = {"action": BooleanOptionalAction}
            elif option in ("use", "drop"):
                settings["action"] = "append"
            required = option == "output" and name in ("fit", "export")
            one.add_argument(*flags_of(option), dest=option, help=text, required=required, **settings)
    return main


def app() -> None:
    """Run the command that the arguments of the process name."""
    given = vars(parser().parse_args())
    name = given.pop("command")
    as_json = given.get("as_json", False)
    if name not in ("predict", "check"):  # the others return what is printed
        given.pop("as_json", None)
    with errors_in_one_sentence(), notices_as_lines():
        if name != "export":
            given["columns"] = columns_of({one: given.pop(one) for one in FILE if one in given})
        result = COMMANDS[name][0](**given)
        if result is not None:
            print(json_text(result.facts) if as_json else "\n".join(result.lines), flush=True)
    if result is not None and result.code:
        raise SystemExit(result.code)


def columns_of(given: dict[str, Any]) -> Any:
    """Return what is asked of the columns of a file."""
    from ..readers import Expected, delimiter_of  # slow

    if "delimiter" in given:
        given["delimiter"] = delimiter_of(given["delimiter"])
    return Expected(**given)


@contextmanager
def notices_as_lines() -> Iterator[None]:
    """Print each warning of a command once, as a line on standard error, at its end."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for text in dict.fromkeys(str(one.message) for one in found):
                note(text)


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """Print an error as one line on standard error; exit with code 2, or with that of Ctrl-C or of a time limit."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output has gone, as `head` does: no fault of the input
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python writes at its end
        raise SystemExit(1) from None
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        end(f"{place}{error.strerror or error}")
    except MemoryError as error:
        end(f"there is not enough memory ({error}); use fewer rows or sparse data")
    except KeyboardInterrupt:
        end("interrupted; every file is complete or was not written.", INTERRUPTED)
    except ReadingStoppedError as error:
        end(str(error), STOPPED)
    except (ValueError, ImportError) as error:  # the latter for packages that are optional
        end(str(error))


def end(message: str, code: int = BAD_INPUT) -> NoReturn:
    """Print a message as one line on standard error, and end the process with this code."""
    note(" ".join(message.split()))
    raise SystemExit(code)
