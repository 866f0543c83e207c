"""maxmargin export: models for other programs."""

from __future__ import annotations

from pathlib import Path

FORMATS = ("onnx", "liblinear", "libsvm")


def export(model: Path, *, output: Path, to: str | None = None, labels: str | None = None) -> None:
    """Write a model for another program: an ONNX graph, or a model file of liblinear or libsvm."""
    from ..numerics.files import check_place
    from ..readers.files import check_file

    kind = to or output.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ValueError(f"--to must be one of {', '.join(FORMATS)}; got {to or 'none'}.")
    check_file(model)
    check_place(output, model)

    from ..io import onnx, text_models
    from ..io.model_file import load

    fitted = load(model)
    if kind == "onnx":
        onnx.to_onnx(fitted, output)
        return
    numbers = None
    if labels is not None:
        try:
            numbers = [int(word) for word in labels.split(",")]
        except ValueError:
            raise ValueError(f"--labels takes whole numbers, as in 0,1,2; got {labels}.") from None
    write = text_models.to_liblinear if kind == "liblinear" else text_models.to_libsvm
    write(fitted, output, labels=numbers)
