"""What several commands ask for in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Context, Option


def exponent(p: Any) -> float | str:
    """A norm as the command line names it."""
    if p == "log":
        return p
    try:
        return float(p)
    except ValueError:
        raise BadParameter(f"--p must be a number from 1 to inf, or log; got {p!r}.") from None


def width(gamma: Any) -> float | str:
    """The gamma of a kernel as the command line names it."""
    if gamma in ("scale", "auto"):
        return gamma
    try:
        return float(gamma)
    except ValueError:
        raise BadParameter(f"--gamma must be a number, scale or auto; got {gamma!r}.") from None


KernelName = Annotated[
    str | None, Option(help="linear, poly, rbf, sigmoid, or another of scikit-learn's pairwise kernels.")
]
Gamma = Annotated[Any, Option(parser=width, metavar="NUMBER", help="Of the kernel: a number, scale or auto.")]
Degree = Annotated[int, Option(help="Of the kernel poly.")]
Coef0 = Annotated[float, Option(help="Of the kernels poly and sigmoid.")]
Data = Annotated[Path, Argument(help="svmlight text, .csv, .npz or .parquet; text also as .gz, .bz2 or .xz.")]
Cost = Annotated[float, Option("--C", help="Weight of the losses; inf is the hard margin.")]
Loss = Annotated[str, Option(help="squared_hinge or hinge.")]
P = Annotated[
    Any, Option(parser=exponent, metavar="NORM", help="Norm of distances: 1 to inf, or log, max(2, 2 ln d).")
]
NormPower = Annotated[int, Option(help="2: half the squared norm of w; 1: the norm itself.")]
FitIntercept = Annotated[bool, Option("--fit-intercept/--no-intercept", help="Is there an intercept?")]
Intercept = Annotated[str, Option(help="free, or augmented (regularised).")]
InterceptScaling = Annotated[float, Option(help="With an augmented intercept.")]
ClassWeight = Annotated[str | None, Option(help="balanced: every class counts as much as any other.")]
Seed = Annotated[int | None, Option(help="Order of presentation; none takes a fresh one.")]
Columns = Annotated[int | None, Option(help="Columns of a sparse file, where not all of them occur in it.")]
Label = Annotated[str | None, Option(help="The label column of a .csv or .parquet file.")]
FORMATS = ("png", "pdf", "svg")  # of pictures
AsJson = Annotated[bool, Option("--json", help="One JSON object on standard output.")]


def given_by(ctx: Context) -> dict[str, Any]:
    """What the command line says, defaults left out."""
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    return {
        name: value
        for name, value in ctx.params.items()
        if (source := sources[name]) is not None and source.name == "COMMANDLINE"
    }


def check_label(data: Path, label: str | None) -> None:
    """Refuse a label column where columns have no names."""
    from ..readers import DataError, names_columns

    if label is not None and not names_columns(data):
        raise DataError(
            f"{data}: --label names a column of a .csv or .parquet file, and this kind of file has a fixed "
            "place for labels; leave --label out."
        )


def picture_kind(path: Path) -> str:
    """What the name of a picture says that it is."""
    kind = path.suffix.lower().removeprefix(".") or "png"
    if kind not in FORMATS:
        raise ValueError(f"{path}: a picture is a .png, .pdf or .svg; give it a name that ends so")
    return kind
