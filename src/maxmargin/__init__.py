"""Maximum-margin classification with a proof."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .algorithms import (
        ALMA,
        CRAMMA,
        FMP,
        IMA,
        MICRA,
        MPU,
        PUMMA,
        ROMMA,
        AggressiveROMMA,
        BarrierPath,
        CuttingPlane,
        DualCoordinateDescent,
        FixedDirectionalMargin,
        FlexibleIMA,
        InteriorPoint,
        LinearProgram,
        LocalPerceptron,
        Newton,
        Pegasos,
        Perceptron,
        ProximalPoint,
    )
    from .certificates.certificate import Certificate, CertificateError, Certificates
    from .certificates.separators import KernelSeparator, LinearSeparator, PolynomialSeparator
    from .certificates.verdicts import Inseparable, Separable, Undecided
    from .certificates.verification import verify
    from .estimators.cv import MaxMarginClassifierCV
    from .estimators.explanation import SupportReport
    from .estimators.imported import ImportedKernelClassifier, ImportedLinearClassifier
    from .estimators.kernel import KernelMaxMarginClassifier
    from .estimators.linear import MaxMarginClassifier
    from .estimators.online import OnlineMarginClassifier
    from .estimators.path import MarginPath, margin_path
    from .estimators.selection import MarginRFE
    from .fit.report import Report
    from .inspection.compare import Comparison, compare
    from .inspection.support_report import support_report
    from .io.json import from_dict, from_json, to_dict, to_json
    from .io.model_file import load, save
    from .io.onnx import to_onnx
    from .io.sealed_file import ModelFileError
    from .io.text_models import from_liblinear, from_libsvm, to_liblinear, to_libsvm
    from .problem.problem import Problem
    from .problem.status import Status
    from .separability.separate import separate

__version__ = "0.1.0"

__all__ = [
    "ALMA",
    "CRAMMA",
    "FMP",
    "IMA",
    "MICRA",
    "MPU",
    "PUMMA",
    "ROMMA",
    "AggressiveROMMA",
    "BarrierPath",
    "Certificate",
    "CertificateError",
    "Certificates",
    "Comparison",
    "CuttingPlane",
    "DualCoordinateDescent",
    "FixedDirectionalMargin",
    "FlexibleIMA",
    "ImportedKernelClassifier",
    "ImportedLinearClassifier",
    "Inseparable",
    "InteriorPoint",
    "KernelMaxMarginClassifier",
    "KernelSeparator",
    "LinearProgram",
    "LinearSeparator",
    "LocalPerceptron",
    "MarginPath",
    "MarginRFE",
    "MaxMarginClassifier",
    "MaxMarginClassifierCV",
    "ModelFileError",
    "Newton",
    "OnlineMarginClassifier",
    "Pegasos",
    "Perceptron",
    "PolynomialSeparator",
    "Problem",
    "ProximalPoint",
    "Report",
    "Separable",
    "Status",
    "SupportReport",
    "Undecided",
    "compare",
    "from_dict",
    "from_json",
    "from_liblinear",
    "from_libsvm",
    "load",
    "margin_path",
    "save",
    "separate",
    "support_report",
    "to_dict",
    "to_json",
    "to_liblinear",
    "to_libsvm",
    "to_onnx",
    "verify",
]

_HOMES = {
    "certificates.certificate": ("Certificate", "CertificateError", "Certificates"),
    "inspection.compare": ("Comparison", "compare"),
    "estimators.cv": ("MaxMarginClassifierCV",),
    "estimators.imported": ("ImportedKernelClassifier", "ImportedLinearClassifier"),
    "estimators.kernel": ("KernelMaxMarginClassifier",),
    "estimators.linear": ("MaxMarginClassifier",),
    "estimators.online": ("OnlineMarginClassifier",),
    "estimators.path": ("MarginPath", "margin_path"),
    "estimators.selection": ("MarginRFE",),
    "estimators.explanation": ("SupportReport",),
    "inspection.support_report": ("support_report",),
    "io.json": ("from_dict", "from_json", "to_dict", "to_json"),
    "io.text_models": ("from_liblinear", "from_libsvm", "to_liblinear", "to_libsvm"),
    "io.onnx": ("to_onnx",),
    "io.model_file": ("load", "save"),
    "io.sealed_file": ("ModelFileError",),
    "problem.problem": ("Problem",),
    "algorithms": (
        "ALMA",
        "CRAMMA",
        "FMP",
        "IMA",
        "MICRA",
        "MPU",
        "PUMMA",
        "ROMMA",
        "AggressiveROMMA",
        "BarrierPath",
        "CuttingPlane",
        "DualCoordinateDescent",
        "FixedDirectionalMargin",
        "FlexibleIMA",
        "InteriorPoint",
        "LinearProgram",
        "LocalPerceptron",
        "Newton",
        "Pegasos",
        "Perceptron",
        "ProximalPoint",
    ),
    "separability.separate": ("separate",),
    "fit.report": ("Report",),
    "problem.status": ("Status",),
    "certificates.verification": ("verify",),
    "certificates.separators": ("KernelSeparator", "LinearSeparator", "PolynomialSeparator"),
    "certificates.verdicts": ("Inseparable", "Separable", "Undecided"),
}


# type checkers would take any name for one of ours
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a name when it is first asked for: `maxmargin --help` need not wait for the compiler."""
        for module, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f".{module}", __name__), name)
        if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
