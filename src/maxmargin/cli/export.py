"""maxmargin export and import: models for other programs, and theirs for us."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from .exits import one_sentence

ENDS = {".onnx": "onnx", ".json": "json"}  # of names that say what a file holds
NAMES = ("onnx", "liblinear", "libsvm", "json")


def export(
    model: Annotated[Path, Argument(help="A file that `maxmargin fit` wrote.")],
    output: Annotated[Path, Option("--output", "-o", help="The file to write.")],
    to: Annotated[
        str | None,
        Option("--to", help="onnx, liblinear, libsvm or json; .onnx and .json say it by themselves."),
    ] = None,
    labels: Annotated[
        str | None,
        Option(help="For liblinear and libsvm: a whole number for each class, in sorted order, as in 0,1,2."),
    ] = None,
    single: Annotated[
        bool, Option("--single", help="For onnx: rows and scores of float32 numbers instead of float64.")
    ] = False,
) -> None:
    """Write a model for another program: an ONNX graph, a model file of liblinear or libsvm, or readable JSON."""
    with one_sentence():
        from ..io.readers.files import look
        from ..numerics.files import check_place

        kind = _kind(output, to, "--to")
        if labels is not None and kind in ("onnx", "json"):
            raise ValueError(
                f"--labels is for liblinear and libsvm; {kind} holds classes of any name: leave it out"
            )
        if single and kind != "onnx":
            raise ValueError(
                f"--single is for onnx; numbers in a file of {kind} have all their digits: leave it out"
            )
        look(model)
        check_place(output, model)

        from ..io.model_file import load

        fitted = load(model)
        try:
            if kind == "onnx":
                from ..io.onnx import to_onnx

                to_onnx(fitted, output, dtype="float32" if single else "float64")
            elif kind == "json":
                from ..io.json import to_json

                to_json(fitted, output)
            elif kind == "liblinear":
                from ..io.liblinear import to_liblinear

                to_liblinear(fitted, output, labels=_numbers(labels))
            else:
                from ..io.libsvm import to_libsvm

                to_libsvm(fitted, output, labels=_numbers(labels))
        except ImportError as error:
            raise ValueError(str(error)) from None


def import_model(
    file: Annotated[Path, Argument(help="A model file of liblinear or libsvm, or JSON that `export` wrote.")],
    output: Annotated[
        Path, Option("--output", "-o", help="The model file to write, for `maxmargin predict`.")
    ],
    of: Annotated[
        str | None,
        Option("--from", help="liblinear, libsvm or json; the beginning of the file says it, too."),
    ] = None,
    n_features: Annotated[
        int | None,
        Option(help="Of libsvm: columns of the data, where support vectors do not have all of them."),
    ] = None,
) -> None:
    """Read a model of another program, and write it as one that `maxmargin predict` takes.

    It has no certificate: no such file holds a proof.
    """
    with one_sentence():
        from ..io.readers.files import look
        from ..numerics.files import check_place

        look(file)
        check_place(output, file)
        kind = of or _found(file)
        if kind not in NAMES[1:]:
            raise ValueError(f"--from must be liblinear, libsvm or json; got {kind}")
        if n_features is not None and kind != "libsvm":
            raise ValueError(
                f"--n-features is for libsvm; a file of {kind} says how many there are: leave it out"
            )

        from ..io.model_file import save

        model: Any
        if kind == "json":
            from ..io.json import from_json

            model = from_json(file)
        elif kind == "liblinear":
            from ..io.liblinear import from_liblinear

            model = from_liblinear(file)
        else:
            from ..io.libsvm import from_libsvm

            model = from_libsvm(file, n_features=n_features)
        if kind != "json":
            model.source_ = {"label": None, "first_index": 1}  # from what svmlight indices count
        save(model, output)


def _kind(path: Path, named: str | None, option: str) -> str:
    """The kind of a file, as it is asked for or by the end of its name."""
    kind = named or ENDS.get(path.suffix.lower())
    if kind not in NAMES:
        raise ValueError(
            f"{option} must be one of {', '.join(NAMES)}; {'got ' + kind if kind else 'none is named'}"
        )
    return kind


def _found(path: Path) -> str:
    """The kind of a model file by its first bytes."""
    with open(path, "rb") as file:
        begin = file.read(32).lstrip()
    for kind, word in (("liblinear", b"solver_type"), ("libsvm", b"svm_type"), ("json", b"{")):
        if begin.startswith(word):
            return kind
    raise ValueError(
        f"{path}: this is neither a model of liblinear nor of libsvm, nor JSON; a model that `maxmargin fit` wrote "
        "needs no import"
    )


def _numbers(labels: str | None) -> list[int] | None:
    if labels is None:
        return None
    try:
        return [int(word) for word in labels.split(",")]
    except ValueError:
        raise ValueError(f"--labels takes whole numbers, as in 0,1,2; got {labels}") from None
