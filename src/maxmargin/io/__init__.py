"""Model files, certificate files, and models for other programs (ONNX, liblinear, libsvm)."""


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that cannot be written; the message says why."""
