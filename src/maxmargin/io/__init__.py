"""Models for other programs, and theirs for us: ONNX, the text files of liblinear and libsvm, and readable JSON."""
