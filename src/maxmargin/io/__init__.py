"""Model files, certificate files, and models for other programs (ONNX, liblinear, libsvm)."""
