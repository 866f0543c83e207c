"""maxmargin export and import: models for other programs, and models of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .options import command

SUFFIXES = {".onnx": "onnx"}  # that name a format
FORMATS = ("onnx", "liblinear", "libsvm")
OPENINGS = {"liblinear": b"solver_type", "libsvm": b"svm_type"}  # first words of the files


@command()
def export(model: Path, *, output: Path, to: str | None = None, labels: str | None = None) -> None:
    """Write a model for another program: an ONNX graph, or a model file of liblinear or libsvm.

    Parameters
    ----------
    output : Path
        The file to write.
    to : str
        Format: onnx, liblinear or libsvm; by default that of the ending .onnx.
    labels : str
        For liblinear and libsvm: a whole number for each class, in sorted order, as in 0,1,2.
    """
    from ..numerics.files import check_place
    from ..readers.files import check_file

    kind = to or SUFFIXES.get(output.suffix.lower())
    if kind not in FORMATS:
        got = f"got {kind}" if kind else "none is named"
        raise ValueError(f"--to must be one of {', '.join(FORMATS)}; {got}")
    if labels is not None and kind == "onnx":
        raise ValueError(f"--labels is only for liblinear and libsvm, not for {kind}: leave it out")
    check_file(model)
    check_place(output, model)

    from ..io import onnx, text_models
    from ..io.model_file import load

    fitted = load(model)
    if kind == "onnx":
        onnx.to_onnx(fitted, output)
    else:
        write = text_models.to_liblinear if kind == "liblinear" else text_models.to_libsvm
        write(fitted, output, labels=None if labels is None else _whole_numbers(labels))


@command()
def import_model(file: Path, *, output: Path, of: str | None = None, n_features: int | None = None) -> None:
    """Read a model of another program, and write a model file for `maxmargin predict`.

    The model has no certificate, because files of other programs do not contain one.

    Parameters
    ----------
    file : Path
        A model file of liblinear or libsvm.
    output : Path
        The model file to write.
    of : str
        Format: liblinear or libsvm; by default detected from the beginning of the file.
    n_features : int
        For libsvm: number of columns of the data, if no support vector has an entry in the last ones.
    """
    from ..numerics.files import check_place
    from ..readers.files import check_file

    check_file(file)
    check_place(output, file)
    kind = of or _format_of(file)
    if kind not in OPENINGS:
        raise ValueError(f"--from must be liblinear or libsvm; got {kind}")
    if n_features is not None and kind != "libsvm":
        raise ValueError(f"--n-features is only for libsvm; {kind} files contain this number: leave it out")

    from ..io.model_file import save
    from ..io.text_models import from_liblinear, from_libsvm

    model: Any = from_libsvm(file, n_features=n_features) if kind == "libsvm" else from_liblinear(file)
    # svmlight indices of both programs count from 1
    model.source_ = {"label": None, "first_index": 1}
    save(model, output)


def _format_of(path: Path) -> str:
    """Return the format of a model file by its first bytes."""
    with open(path, "rb") as file:
        begin = file.read(32).lstrip()
    for kind, word in OPENINGS.items():
        if begin.startswith(word):
            return kind
    raise ValueError(f"{path}: no model of liblinear or libsvm; one of `maxmargin fit` needs no import")


def _whole_numbers(labels: str) -> list[int]:
    try:
        return [int(word) for word in labels.split(",")]
    except ValueError:
        raise ValueError(f"--labels takes whole numbers, as in 0,1,2; got {labels}") from None
