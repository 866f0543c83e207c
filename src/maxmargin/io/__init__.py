"""Model files, and models for other programs (ONNX, liblinear, libsvm, JSON)."""
