"""Maximum-margin classification with a proof."""

from .certificates import Certificate, CertificateError, Certificates, verify
from .estimators.linear import MaxMarginClassifier
from .persistence import ModelFileError, load, save
from .problems import Problem
from .rules import MPU, DualCoordinateDescent, Perceptron
from .solve import Report
from .status import Status

__version__ = "0.1.0"

__all__ = [
    "MPU",
    "Certificate",
    "CertificateError",
    "Certificates",
    "DualCoordinateDescent",
    "MaxMarginClassifier",
    "ModelFileError",
    "Perceptron",
    "Problem",
    "Report",
    "Status",
    "load",
    "save",
    "verify",
]
