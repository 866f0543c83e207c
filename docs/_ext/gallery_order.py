"""Order of the examples in the gallery: basic examples first."""

from __future__ import annotations

ORDER = (
    "adult",
    "hard_margin",
    "separability",
    "digits_kernel",
    "norms",
    "path",
    "text",
    "web",
    "explanations",
    "robustness",
    "microarray",
    "feature_elimination",
    "stream",
    "time_limits",
    "compare_algorithms",
    "grid_search",
    "calibration",
    "weights",
    "intercept",
)


class GalleryOrder:
    """Sort key of the examples' files; files that `ORDER` does not list come last, by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> tuple[int, str]:
        name = file.removeprefix("plot_").removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER)), name

    def __repr__(self) -> str:
        return "gallery order"
