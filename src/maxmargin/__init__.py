"""Maximum-margin classification with a proof."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors see; a test compares it with the table below
    from .certificates.certificate import Certificate as Certificate
    from .certificates.certificate import CertificateError as CertificateError
    from .certificates.verdicts import Inseparable as Inseparable
    from .certificates.verdicts import KernelSeparator as KernelSeparator
    from .certificates.verdicts import LinearSeparator as LinearSeparator
    from .certificates.verdicts import Undecided as Undecided
    from .estimators.explanation import support_report as support_report
    from .estimators.kernel import KernelMaxMarginClassifier as KernelMaxMarginClassifier
    from .estimators.linear import MaxMarginClassifier as MaxMarginClassifier
    from .estimators.online import OnlineMarginClassifier as OnlineMarginClassifier
    from .estimators.path import MaxMarginClassifierCV as MaxMarginClassifierCV
    from .estimators.path import margin_path as margin_path
    from .estimators.selection import MarginRFE as MarginRFE
    from .inspection.compare import compare as compare
    from .inspection.verification import verify as verify
    from .io import ModelFileError as ModelFileError
    from .io.certificate_file import write_certificate as write_certificate
    from .io.model_file import load as load
    from .io.model_file import save as save
    from .io.onnx import to_onnx as to_onnx
    from .io.text_models import to_liblinear as to_liblinear
    from .io.text_models import to_libsvm as to_libsvm
    from .numerics.progress import ReadingStoppedError as ReadingStoppedError
    from .problem.problem import Problem as Problem
    from .problem.problem import Status as Status
    from .separability.separate import separate as separate

__version__ = "0.1.0"

# Public names by the module that defines them; docs/_ext/reference_pages.py lists the classes of their results.
_MODULES = {
    "certificates.certificate": "Certificate CertificateError",
    "certificates.verdicts": "Inseparable KernelSeparator LinearSeparator Undecided",
    "estimators.explanation": "support_report",
    "estimators.kernel": "KernelMaxMarginClassifier",
    "estimators.linear": "MaxMarginClassifier",
    "estimators.online": "OnlineMarginClassifier",
    "estimators.path": "MaxMarginClassifierCV margin_path",
    "estimators.selection": "MarginRFE",
    "inspection.compare": "compare",
    "inspection.verification": "verify",
    "io": "ModelFileError",
    "io.certificate_file": "write_certificate",
    "io.model_file": "load save",
    "io.onnx": "to_onnx",
    "io.text_models": "to_liblinear to_libsvm",
    "numerics.progress": "ReadingStoppedError",
    "problem.problem": "Problem Status",
    "separability.separate": "separate",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

# type checkers would take any name for one of ours, and do not evaluate a list of names
if not TYPE_CHECKING:
    __all__ = sorted(_HOMES)

    def __getattr__(name: str) -> Any:
        """Load a name when it is first asked for: `maxmargin --help` need not wait for the compiler."""
        if name in _HOMES:
            globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
            return globals()[name]
        if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
