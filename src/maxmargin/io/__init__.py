"""Model files, models for other programs (ONNX, liblinear, libsvm, JSON), and readers of data files."""
