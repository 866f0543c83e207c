"""What several commands ask for in the same words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Context, Option

if TYPE_CHECKING:
    from ..io.readers import Table


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
Data = Annotated[
    Path, Argument(help="svmlight text, .csv, .npz, .parquet or .arrow; text also as .gz, .bz2 or .xz.")
]
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
Label = Annotated[str | None, Option(help="The label column of a .csv, .parquet or .arrow file.")]
Use = Annotated[
    list[str] | None,
    Option("--columns", help="Feature columns of such a file, as in a,b,c; all others are left out."),
]
Drop = Annotated[
    list[str] | None, Option("--drop", help="Columns of such a file that are left out, as in id,date.")
]
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


@dataclass(frozen=True)
class Selection:
    """The columns that a command line names."""

    label: str | None
    use: list[str] | None
    drop: list[str] | None

    def check(self, data: Path) -> None:
        """Refuse names where columns have none."""
        from ..io.readers import DataError, names_columns

        if names_columns(data):
            return
        for option, value in (("--label", self.label), ("--columns", self.use), ("--drop", self.drop)):
            if value:
                place = "a fixed place for labels" if option == "--label" else "no names for columns"
                raise DataError(
                    f"{data}: {option} names a column of a .csv, .parquet or .arrow file, and this kind of file has "
                    f"{place}; leave {option} out."
                )

    def read(self, data: Path, n_features: int | None, **known: Any) -> Table:
        """Read a file with what is named, and what a model knows."""
        from ..io.readers import read

        known = {"label": self.label, **known}
        return read(data, n_features, use=self.use or (), drop=self.drop or (), **known)


def picture_kind(path: Path) -> str:
    """What the name of a picture says that it is."""
    kind = path.suffix.lower().removeprefix(".") or "png"
    if kind not in FORMATS:
        raise ValueError(f"{path}: a picture is a .png, .pdf or .svg; give it a name that ends so")
    return kind
