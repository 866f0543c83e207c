"""Fits of sparse partitioned rows by dual coordinate descent, with the open rows in memory."""

import mmap
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.data.partitions import ArrayPartitions
from maxmargin.fit.deadline import Deadline
from maxmargin.fit.partitioned import soft_margins
from maxmargin.fit.partitioned.cached_loops import rows_in_memory
from maxmargin.fit.partitioned.cached_loops_driver import LoopsDriver
from maxmargin.fit.partitioned.driver import PartitionedFit
from maxmargin.fit.partitioned.dual_arrays import dual_arrays
from maxmargin.fit.partitioned.policy import method_for
from maxmargin.fit.report import Stopping

N, D, TOL = 240, 60, 1e-4


def make(seed=0, classes=2, n=N, d=D):
    """Return sparse rows with noisy labels of several classes, and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.1, "csr", rng=rng, data_rvs=rng.standard_normal)
    scores = (
        X @ rng.standard_normal((d, classes)) + 0.7 * rng.standard_normal((n, classes)) + np.arange(classes)
    )
    weights = rng.integers(0, 4, n) * rng.uniform(0.5, 1.5, n)
    return sp.csr_matrix(X), scores.argmax(axis=1), weights


def memory_of(partitions, rows):
    """Return a number of bytes that holds as many rows."""
    memory = 80.0 * partitions.shape[1] + 1.0  # vectors of the columns take 80 bytes each
    while rows_in_memory(memory, partitions) < rows:
        memory *= 1.1
    return memory


def fit(
    X, codes, problem, weights=None, rows=80, tol=TOL, most=200, classes=2, deadline=None, on_report=None
):
    partitions = ArrayPartitions(X, codes, weights)
    hooks = {} if on_report is None else {"on_report": on_report}
    stopping = Stopping(tol, most, deadline or Deadline(), **hooks)
    memory = memory_of(partitions, rows)
    task = PartitionedFit(partitions, problem, list(range(classes)), stopping, memory)
    return LoopsDriver(task).solve(), partitions


def verified(found, X, codes, weights=None):
    """Verify the certificate of a problem of two classes from the data in memory."""
    model = SimpleNamespace(
        coef_=found.w[None], intercept_=np.array([found.b]), classes_=np.array([0, 1]), class_weight_=np.ones(2),
        certificate_=found.certificate,
    )  # fmt: skip
    return verify(model, X, codes, weights)


def optimum(X, y, problem, weights):
    """Return an interval of the optimum, from the solver in memory."""
    model = MaxMarginClassifier(
        C=problem.C, loss=problem.loss, fit_intercept=problem.intercept != "none",
        intercept="augmented" if problem.intercept == "augmented" else "free",
        intercept_scaling=problem.intercept_scaling, tol=1e-7,
    ).fit(X, y, sample_weight=weights)  # fmt: skip
    return model.certificate_.lower, model.certificate_.upper


@pytest.mark.parametrize("intercept", ["none", "free", "augmented"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("C", "weighted"), [(0.1, False), (3.0, True)])
def test_bounds_contain_the_optimum_and_are_verified(loss, intercept, C, weighted):
    X, codes, weights = make(1)
    weights = weights if weighted else None
    problem = Problem(
        loss, C, intercept=intercept, intercept_scaling=2.0 if intercept == "augmented" else 1.0
    )
    (found,), partitions = fit(X, codes, problem, weights)
    low, high = optimum(X, codes, problem, weights)
    certificate = found.certificate
    assert found.status is Status.CERTIFIED
    assert certificate.gap <= TOL
    assert certificate.lower <= high
    assert low <= certificate.upper
    assert partitions.passes == len(found.history) < 40
    again = verified(found, X, codes, weights)
    assert problem.gap(again.lower, again.upper) <= TOL * (1.0 + 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_rows_and_rows_in_float32_are_solved(dtype):
    X, codes, weights = make(2)
    X = X.astype(dtype)
    problem = Problem("hinge", 1.0)
    low, high = optimum(X, codes, problem, weights)
    for data in (X, X.toarray()):
        (found,), _ = fit(data, codes, problem, weights)
        assert found.status is Status.CERTIFIED
        assert found.certificate.lower <= high
        assert low <= found.certificate.upper
        verified(found, data, codes, weights)


def test_several_classes_are_solved_one_against_the_rest():
    X, codes, weights = make(3, classes=3)
    problem = Problem("squared_hinge", 0.5)
    found, _ = fit(X, codes, problem, weights, classes=3)
    for k, one in enumerate(found):
        low, high = optimum(X, codes == k, problem, weights)
        assert one.status is Status.CERTIFIED
        assert one.history[-1].label == k
        assert one.certificate.lower <= high
        assert low <= one.certificate.upper
        verified(one, X, codes == k, weights)


def test_rows_sorted_by_label_take_few_more_passes():
    """Blocks are mixed from the whole data: rows of one class in a row cost at most twice the passes."""
    X, codes, _ = make(4, n=3000)
    problem = Problem("hinge", 0.3)
    (shuffled,), _ = fit(X, codes, problem, rows=300, tol=1e-3)
    order = np.argsort(codes, kind="stable")
    (ordered,), _ = fit(X[order], codes[order], problem, rows=300, tol=1e-3)
    assert ordered.status is shuffled.status is Status.CERTIFIED
    assert ordered.rounds <= 2 * shuffled.rounds


@pytest.mark.parametrize("rows", [2, 3, 17])
def test_blocks_of_few_rows_hold_one_class_only(rows):
    X, codes, _ = make(5, n=60, d=12)
    problem = Problem("hinge", 0.1)
    (found,), _ = fit(X, codes, problem, rows=rows, tol=1e-2, most=300)
    low, high = optimum(X, codes, problem, None)
    assert found.certificate.lower <= high
    assert low <= found.certificate.upper
    assert found.certificate.gap <= 1e-2


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_data_of_one_class(intercept):
    X, _, _ = make(6)
    codes = np.ones(N, int)
    problem = Problem("hinge", 1.0, intercept=intercept)
    (found,), _ = fit(X, codes, problem, most=5)
    certificate = found.certificate
    assert certificate.lower <= certificate.upper < np.inf
    verified(found, X, codes)


def test_rows_of_weight_zero_and_of_no_class_take_no_part():
    X, codes, weights = make(7)
    problem, used = Problem("hinge", 1.0), weights > 0.0
    (found,), _ = fit(X, np.where(used, codes, -1), problem, np.maximum(weights, 0.5))
    low, high = optimum(X[used], codes[used], problem, np.maximum(weights, 0.5)[used])
    assert found.certificate.lower <= high
    assert low <= found.certificate.upper
    assert used[found.certificate.support].all()


def test_a_deadline_ends_within_a_block_with_valid_bounds():
    X, codes, weights = make(8, n=2000)
    problem, stopped = Problem("hinge", 1.0), threading.Event()
    low, high = optimum(X, codes, problem, weights)
    for passes in (1, 2):
        stopped.clear()
        blocks = []

        class Counting(Deadline):
            def interrupted(self):
                if passes == max(reports, default=0):  # noqa: B023
                    blocks.append(0)  # noqa: B023
                    if len(blocks) == 3:  # noqa: B023
                        stopped.set()
                return super().interrupted()

            def split(self, shares):
                return self

        reports = []
        deadline = Counting(stopped=stopped)
        (found,), partitions = fit(
            X, codes, problem, weights, rows=100, tol=1e-12, deadline=deadline,
            on_report=lambda report, point, deadline: reports.append(report.presentations // 2000),  # noqa: B023
        )  # fmt: skip
        assert found.status is Status.INTERRUPTED
        assert found.rounds == partitions.passes == passes
        assert found.certificate.lower <= high
        assert low <= found.certificate.upper
        verified(found, X, codes, weights)


def test_nothing_is_proved_before_the_first_pass_ends():
    X, codes, _ = make(9)
    (found,), partitions = fit(X, codes, Problem("hinge", 1.0), deadline=Deadline(0.0))
    assert found.status is Status.MAX_TIME
    assert found.certificate.proves_nothing
    assert partitions.passes == 0
    assert np.isfinite(found.w).all()


def test_the_file_of_dual_variables_is_deleted_also_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail_with(duals):
        assert isinstance(duals.base, mmap.mmap)
        assert duals.shape == (3, 1000)
        assert not duals.any()
        duals[1, 7] = 3.0
        raise RuntimeError

    with pytest.raises(RuntimeError), dual_arrays(1000, memory=100.0) as duals:
        fail_with(duals)
    with dual_arrays(1000, memory=1e6) as duals:
        assert duals.base is None
        assert not duals.any()
    assert list(tmp_path.iterdir()) == []


def test_mixed_blocks_are_a_partition_of_the_rows():
    X, codes, weights = make(10, n=1003)
    for rows in (1, 5, 64, 100, 999, 5000):
        partitions = ArrayPartitions(X, codes, weights, block_bytes=300)
        blocks = list(partitions.mixed_blocks(rows, np.random.default_rng(0), lambda: False))
        assert max(block.size for block in blocks) <= rows
        assert partitions.passes == 1
        numbers = np.concatenate([block.numbers for block in blocks])
        assert np.array_equal(np.sort(numbers), np.arange(1003))
        for block in blocks[:3]:
            assert (X[block.numbers] != block.X).nnz == 0
            assert np.array_equal(block.weights, weights[block.numbers])
    sizes = [block.size for block in partitions.mixed_blocks(64, np.random.default_rng(0), lambda: True)]
    assert sizes == []
    assert partitions.passes == 1


def test_the_method_depends_on_columns_entries_and_memory():
    """Newton's method needs several matrices of d x d and 20 rows a column in memory; cached loops need neither."""
    problem = Problem("hinge", 1.0)

    def method(n, d, entries, memory):
        X = sp.csr_matrix(
            (np.ones(n * entries), np.zeros(n * entries, np.int32), np.arange(n + 1) * entries), (n, d)
        )
        return method_for(problem, ArrayPartitions(X, np.zeros(n, int)), memory)[0]

    assert method(10_000, 30, 10, 1e8) == "partitioned-newton"
    assert method(10_000, 30, 10, 1e5) == "cached-loops"
    assert method(10_000, 600, 100, 1e10) == "cached-loops"
    assert method(20_000, 1000, 10, 1e10) == "cached-loops"
    assert method(100, 100_000, 10, 1e9) == "cached-loops"
    with pytest.raises(ValueError, match="soft margins at p = 2"):
        method_for(Problem("hinge", np.inf), ArrayPartitions(np.ones((3, 1)), np.zeros(3, int)), 1e9)


def test_cached_loops_take_over_where_newton_stalls(monkeypatch):
    """Newton's method stalls at a gap of 1e-16, which no method reaches; here cached loops take over there as well."""
    monkeypatch.setattr(soft_margins, "FALLBACK_GAP", 0.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + rng.normal(size=300) > 0.0).astype(int)
    model = MaxMarginClassifier(tol=1e-16, memory="8KB", random_state=0).fit(X, y)
    stages = [report.stage for report in model.history_]
    assert stages[0] == "partitioned-newton"
    assert stages[-1] == "cached-loops"
    assert [report.round for report in model.history_] == list(range(1, len(stages) + 1))
    assert model.certificate_.gap <= min(report.gap for report in model.history_)
    assert verify(model, X, y).gap <= 1e-9
