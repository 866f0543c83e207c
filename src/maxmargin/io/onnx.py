"""Models as ONNX graphs, by converters registered with skl2onnx.

A graph has two outputs: the label, and the scores of `decision_function`. Labels are computed from exactly the scores
that the graph returns, so that neither can contradict the other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..estimators.kernel import KernelMaxMarginClassifier
from ..estimators.path import MaxMarginClassifierCV
from ..kernels.functions import Gaussian, Kernel, Linear, Polynomial, Sigmoid
from ..numerics.files import written_whole
from ..problem.multiclass import AgainstEachOther, Parts, parts_of
from . import ModelFileError
from .text_models import KINDS, check_kernel_model, unsupported_kernel, weights_of

CLASSIFIERS = (*KINDS, MaxMarginClassifierCV)


def to_onnx(model: Any, path: str | os.PathLike[str], *, target_opset: int | None = None) -> None:
    """Write a classifier, or a pipeline that ends with one, as an ONNX model.

    Parameters
    ----------
    model : classifier of maxmargin, or a Pipeline or a search around one
        Fitted. Of kernels, those by the names linear, poly, rbf and sigmoid. Rows and scores of the graph are float64.
    path : str or path-like
        The file appears whole or not at all.
    target_opset : int, default=None
        Of the ONNX operators; None is the newest that skl2onnx knows.

    Raises
    ------
    ModelFileError
        If the model cannot be such a graph; the message says what can be done.
    ImportError
        If skl2onnx is not installed.
    OSError
        If the file cannot be written.

    See Also
    --------
    register : For `skl2onnx.to_onnx` itself, with other inputs and options.
    """
    register()
    from skl2onnx import to_onnx as converted
    from skl2onnx.common.data_types import DoubleTensorType

    check_is_fitted(model)
    width = getattr(model, "n_features_in_", None)
    if width is None:
        raise ModelFileError("the graph needs a fixed number of columns: fit with arrays, without a hasher.")
    last = _final_classifier(model)
    if not isinstance(last, CLASSIFIERS):
        raise ModelFileError(
            "a classifier of maxmargin can be written alone, at the end of pipelines and in searches, not in "
            f"{type(last).__name__}: write the classifier alone."
        )
    inputs: Any = [("X", DoubleTensorType([None, width]))]
    try:
        graph: Any = converted(model, initial_types=inputs, target_opset=target_opset)
    except RuntimeError as error:
        words = " ".join(str(error).split())[:200].rstrip(".")
        raise ModelFileError(
            f"skl2onnx cannot convert this model ({words}): write the classifier alone, or select columns by number."
        ) from None
    certificate = getattr(last, "certificate_", None)
    if certificate is not None:
        graph.metadata_props.add(key="certificate", value=str(certificate))
    with written_whole(path) as file:
        file.write(graph.SerializeToString())


def _final_classifier(model: Any) -> Any:
    """Return the classifier inside pipelines and searches."""
    while not isinstance(model, CLASSIFIERS) and (
        hasattr(model, "best_estimator_") or hasattr(model, "steps")
    ):
        model = model.best_estimator_ if hasattr(model, "best_estimator_") else model.steps[-1][1]
    return model


def register() -> None:
    """Register the classifiers with skl2onnx, which then converts them, alone and in pipelines.

    Outputs are ``label`` and ``scores``, the latter as `decision_function` returns them.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.

    Examples
    --------
    >>> from maxmargin.io.onnx import register
    >>> register()
    """
    try:
        import skl2onnx
    except ImportError:
        raise ImportError("ONNX models need skl2onnx: pip install 'maxmargin[onnx]'.") from None
    # zipmap is about probabilities, but skl2onnx passes it to every classifier in nested pipelines
    options = {"zipmap": [True, False, "columns"]}
    for kind in CLASSIFIERS:
        convert = _convert_kernel_model if kind is KernelMaxMarginClassifier else _convert_linear
        skl2onnx.update_registered_converter(
            kind,
            f"Maxmargin{kind.__name__}",
            _shapes,
            convert,
            overwrite=True,
            parser=_outputs,
            options=options,
        )


# the functions that skl2onnx calls


def _outputs(scope: Any, model: Any, inputs: Sequence[Any], custom_parsers: Any = None) -> Any:
    """Declare the node of a classifier and its two outputs."""
    from skl2onnx._supported_operators import _get_sklearn_operator_name

    node = scope.declare_local_operator(_get_sklearn_operator_name(type(model)), model)
    node.inputs = list(inputs)
    for name, kind in zip(("label", "scores"), _types(model), strict=True):
        node.outputs.append(scope.declare_local_variable(name, kind))
    return node.outputs


def _shapes(operator: Any) -> None:
    """Set the types of the two outputs."""
    for output, kind in zip(operator.outputs, _types(operator.raw_operator), strict=True):
        output.type = kind


def _types(model: Any) -> tuple[Any, Any]:
    """Return the types of the labels and of the scores."""
    from skl2onnx.common import data_types

    kinds = {"b": data_types.BooleanTensorType, "f": data_types.DoubleTensorType}
    kinds |= dict.fromkeys("iu", data_types.Int64TensorType)
    labels = kinds.get(np.asarray(model.classes_).dtype.kind, data_types.StringTensorType)
    count = len(model.classes_)
    pairs = getattr(model, "decision_function_shape", "ovr") == "ovo"
    columns = [] if count == 2 else [count * (count - 1) // 2 if pairs else count]
    return labels([None]), data_types.DoubleTensorType([None, *columns])


class _Graph:
    """Builder of the nodes of one classifier; its methods add nodes and return the names of their outputs.

    Parameters
    ----------
    scope, operator, container
        Of skl2onnx.

    Attributes
    ----------
    X : str
        The rows in float64.
    """

    def __init__(self, scope: Any, operator: Any, container: Any) -> None:
        from onnx import TensorProto

        self.scope, self.container = scope, container
        self.label_output, self.scores_output = (output.full_name for output in operator.outputs)
        self.X = self.node("Cast", operator.inputs[0].full_name, to=TensorProto.DOUBLE)

    def node(self, kind: str, *inputs: Any, output: str | None = None, **attributes: Any) -> str:
        """Add a node; inputs that are no names are constants."""
        names = [one if isinstance(one, str) else self.constant(np.float64(one)) for one in inputs]
        name = output or str(self.scope.get_unique_variable_name(kind.lower()))
        attributes["name"] = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, names, name, **attributes)
        return name

    def constant(self, values: Any) -> str:
        """Add an array to the graph."""
        from onnx import TensorProto, helper

        name = str(self.scope.get_unique_variable_name("constant"))
        texts = values.dtype.kind in "UO"
        kind = TensorProto.STRING if texts else helper.np_dtype_to_tensor_dtype(values.dtype)
        entries = [str(one).encode() for one in values] if texts else values.ravel()
        self.container.add_initializer(name, kind, values.shape, entries)
        return name

    def output_scores(self, scores: str) -> str:
        """Make scores the output."""
        return self.node("Identity", scores, output=self.scores_output)

    def output_labels(self, labels: np.ndarray, places: str) -> None:
        """Make labels the output; `places` are their indices in `labels`."""
        wide = {"i": np.int64, "u": np.int64, "f": np.float64}.get(labels.dtype.kind, labels.dtype)
        self.node("Gather", self.constant(labels.astype(wide)), places, output=self.label_output, axis=0)

    def output_largest(self, values: str, labels: np.ndarray) -> None:
        """Make the label of the largest value the output; of equal values the first."""
        self.output_labels(labels, self.node("ArgMax", values, axis=1, keepdims=0))


def _convert_linear(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a linear model."""
    coef, intercept = weights_of(operator.raw_operator)
    labels = operator.raw_operator.classes_
    graph, two = _Graph(scope, operator, container), len(labels) == 2
    products = graph.node("MatMul", graph.X, coef[0] if two else coef.T)
    _compare(graph, graph.node("Add", products, intercept), labels)


def _convert_kernel_model(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a kernel machine."""
    model = operator.raw_operator
    check_kernel_model(model)
    vectors = model.support_vectors_
    vectors = np.asarray(vectors.toarray() if sp.issparse(vectors) else vectors, float)
    parts = parts_of(model.multi_class_, len(model.classes_))
    coefficients = parts.unpacked(model.dual_coef_, model.n_support_)
    graph = _Graph(scope, operator, container)
    values = _kernel_values(graph, model.kernel_, vectors)
    two = len(parts.labels) == 1
    sums = graph.node("MatMul", values, coefficients[0] if two else coefficients.T)
    scores = graph.node("Add", sums, model.intercept_)
    if not two and isinstance(parts, AgainstEachOther):
        _compare_pairs(graph, scores, model, parts)
    else:
        _compare(graph, scores, model.classes_)


def _compare(graph: _Graph, scores: str, labels: np.ndarray) -> None:
    """Output the scores, and the label of the largest; of two labels the second where the score is positive."""
    from onnx import TensorProto

    scores = graph.output_scores(scores)
    if len(labels) > 2:
        graph.output_largest(scores, labels)
    else:
        positive = graph.node("Greater", scores, 0.0)
        graph.output_labels(labels, graph.node("Cast", positive, to=TensorProto.INT64))


def _compare_pairs(graph: _Graph, scores: str, model: Any, parts: Parts) -> None:
    """Output the scores of pairs or of classes, and the label by votes, as scikit-learn's SVC has them.

    The score of a class is its votes plus sum / (3 (|sum| + 1)), less than half a vote, where sum adds up its scores.
    """
    from onnx import TensorProto

    first, second = (np.eye(parts.count)[side] for side in np.array(parts.labels).T)
    by_pairs = model.decision_function_shape == "ovo"
    scores = graph.output_scores(scores) if by_pairs else scores
    won = graph.node("Cast", graph.node("Greater", scores, 0.0), to=TensorProto.DOUBLE)
    votes = graph.node("Add", graph.node("MatMul", won, first - second), second.sum(axis=0))
    if by_pairs:
        graph.output_largest(votes, model.classes_)
        return
    sums = graph.node("MatMul", scores, first - second)
    divisor = graph.node("Mul", graph.node("Add", graph.node("Abs", sums), 1.0), 3.0)
    values = graph.output_scores(graph.node("Add", votes, graph.node("Div", sums, divisor)))
    graph.output_largest(values if model.break_ties else votes, model.classes_)


def _kernel_values(graph: _Graph, kernel: Kernel, vectors: np.ndarray) -> str:
    """Add the nodes of k(z, x) for all rows z and support vectors x."""
    if isinstance(kernel, Linear):
        return graph.node("MatMul", graph.X, vectors.T)
    if isinstance(kernel, Gaussian):
        squares = graph.node("MatMul", graph.node("Mul", graph.X, graph.X), np.ones((vectors.shape[1], 1)))
        products = graph.node("MatMul", graph.X, -2.0 * vectors.T)
        sums = graph.node("Add", products, np.einsum("ij,ij->i", vectors, vectors))
        distances = graph.node("Relu", graph.node("Add", sums, squares))
        return graph.node("Exp", graph.node("Mul", distances, -kernel.gamma))
    if isinstance(kernel, Polynomial | Sigmoid):
        products = graph.node("MatMul", graph.X, kernel.gamma * vectors.T)
        shifted = graph.node("Add", products, kernel.coef0)
        if isinstance(kernel, Sigmoid):
            return graph.node("Tanh", shifted)
        return graph.node("Pow", shifted, float(kernel.degree))
    raise unsupported_kernel(kernel)
