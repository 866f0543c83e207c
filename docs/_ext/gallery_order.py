"""The order of the gallery: from the first fit to what few ask for."""

from __future__ import annotations

READING = (
    "adult",
    "hard_margin",
    "separability",
    "digits_kernel",
    "norms",
    "robustness",
    "text",
    "web",
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


class Reading:
    """Places of files; those without one come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> tuple[int, str]:
        name = file.removeprefix("plot_").removesuffix(".py")
        return (READING.index(name) if name in READING else len(READING)), name

    def __repr__(self) -> str:
        return "the order of reading"
