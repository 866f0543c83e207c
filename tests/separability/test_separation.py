"""Separability: verdicts at the edge of separability are correct and decided."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from edge import KINDS, cancels, edges, narrow, separates, simplex

from maxmargin import CertificateError, Inseparable, Separable, Undecided, separate
from maxmargin.numerics.rational import BeyondReachError, IntegerRows, null_vector
from maxmargin.separability import search
from maxmargin.separability.nearest_point import nearest_points
from maxmargin.separability.search import trivial_certificate

SQUARE = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
ROOT = Path(__file__).resolve().parents[2]


def flipped(n: int = 350, d: int = 10, flips: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows with linear labels, a few of them flipped: SVC with a large C takes minutes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0.0, 1, -1)
    y[rng.choice(n, flips, replace=False)] *= -1
    return X, y


class TestVerdicts:
    @pytest.mark.parametrize("seed", range(5))
    def test_verdicts_are_correct_at_the_edge_of_separability(self, seed):
        for edge in edges(100, seed):
            verdict = separate(edge.X, edge.y, bias=edge.bias, tol=np.inf)
            assert verdict.separable is edge.separable, edge
            assert verdict.verify(edge.X, edge.y) is verdict
            if isinstance(verdict, Inseparable):  # checked by independent arithmetic
                alpha = dict(zip(verdict.support.tolist(), verdict.weights, strict=True))
                assert cancels(edge.X, edge.y, alpha, edge.bias)
                assert len(alpha) <= edge.X.shape[1] + 1 + edge.bias
                assert sum(alpha.values()) == 1
            else:
                point = [Fraction(v) for v in [*verdict.w.tolist(), verdict.b]]
                assert separates(edge.X, edge.y, point[:-1], point[-1])

    def test_edge_problems_are_of_all_kinds_and_have_tiny_margins(self):
        found = edges(120, 0)
        assert {edge.kind for edge in found} == {kind.__name__ for kind in KINDS}
        margins = [
            separate(edge.X, edge.y, bias=edge.bias, tol=np.inf).hi / np.abs(edge.X).max()
            for edge in found
            if edge.kind == "narrow"
        ]
        assert min(margins) < 1e-8

    @pytest.mark.parametrize("margin", [1e-9, 1e-12, 1e-15])
    @pytest.mark.parametrize("spread", [0, 60])
    def test_tiny_margins_are_decided_for_columns_of_any_size(self, margin, spread):
        rng = np.random.default_rng(int(-np.log10(margin)))
        exact_ones = 0
        for d in (3, 12, 20):
            X = np.round(rng.standard_normal((5 * d, d)) * 2.0**20) / 2.0**20
            w = np.append(1.0, np.round(rng.standard_normal(d - 1) * 64) / 64)
            y = np.where(np.arange(5 * d) % 2 == 0, 1.0, -1.0)
            X[:, 0] = 0.0
            X[:, 0] = y * margin - X @ w
            exact = [Fraction(v) for v in w.tolist()]
            keep = [i for i in range(y.size) if separates(X[i : i + 1], y[i : i + 1], exact, Fraction(0))]
            X, y = X[keep] * 2.0 ** rng.integers(-spread, spread + 1, d), y[keep]
            verdict = separate(X, y, bias=False, tol=np.inf)
            assert isinstance(verdict, Separable)
            assert 0.0 < verdict.lo <= verdict.hi
            verdict.verify(X, y)
            exact_ones += verdict.exact is not None
        assert (exact_ones > 0) == (margin == 1e-15)  # more digits than float64 has

    def test_one_unit_in_the_last_place_decides_the_verdict(self):
        rng = np.random.default_rng(0)
        for _ in range(30):
            corners = np.round(rng.uniform(1.0, 2.0, (3, 2)) * 2.0**30) / 2.0**30
            corners[2] += [0.0, 3.0]  # above the other two
            middle = 0.5 * (corners[0] + corners[1])  # on their edge, exactly
            for shift, expected in ((0, False), (1, False), (-1, True)):
                last = np.array([middle[0], middle[1] + shift * 2.0**-51])
                X, y = np.vstack([corners, last]), np.array([0, 0, 0, 1])
                if abs(corners[0, 0] - corners[1, 0]) < 1e-3:
                    continue
                verdict = separate(X, y, tol=np.inf)
                assert verdict.separable is expected is simplex(X, 2.0 * y - 1.0, True)
                verdict.verify(X, y)

    def test_random_dichotomies_near_the_cover_threshold_are_decided(self):
        rng = np.random.default_rng(1)
        for k in range(40):
            d = int(rng.integers(2, 6))
            n = 2 * d + int(rng.integers(0, 4))
            X, y = rng.integers(-20, 21, (n, d)).astype(float), rng.choice([-1.0, 1.0], n)
            y[:2] = 1.0, -1.0
            assert separate(X, y, bias=bool(k % 2), tol=np.inf).separable is simplex(X, y, bool(k % 2))


class TestProofs:
    def test_five_flipped_labels_are_proved_within_200_ms(self):
        X, y = flipped()
        separate(SQUARE, [1, 1, 0, 0])  # imports
        begin = time.perf_counter()
        verdict = separate(X, y)
        seconds = time.perf_counter() - begin
        assert isinstance(verdict, Inseparable)
        assert verdict.support.size <= 12
        verdict.verify(X, y)
        assert seconds < 0.2

    def test_exclusive_or_has_equal_weights(self):
        verdict = separate(SQUARE, [1, 1, 0, 0])
        assert verdict.weights == (Fraction(1, 4),) * 4
        assert verdict.alpha.tolist() == [0.25] * 4
        assert verdict.radius == pytest.approx(2.0**-1.5, rel=1e-9)

    @pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
    def test_every_hyperplane_misses_by_at_least_the_radius(self, p):
        rng = np.random.default_rng(3)
        q = {1.0: np.inf, 1.5: 3.0, 2.0: 2.0, np.inf: 1.0}[p]
        X, y = flipped(60, 3, 6)
        for bias in (True, False):
            verdict = separate(X, y, p=p, bias=bias)
            assert verdict.radius > 0.0
            for _ in range(200):
                w = rng.standard_normal(3)
                z = X @ w
                b = -0.5 * (z[y > 0].min() + z[y < 0].max()) if bias else 0.0
                assert (y * (z + b)).min() <= -verdict.radius * np.linalg.norm(w, q) * (1.0 - 1e-9)

    @pytest.mark.parametrize("p", [1, 1.5, 2, 5, np.inf])
    def test_margin_interval_agrees_with_the_fit(self, p):
        from maxmargin import MaxMarginClassifier

        rng = np.random.default_rng(4)
        X = rng.standard_normal((40, 4))
        y = np.where(X @ [1.0, -1.0, 0.5, 0.0] > 0.2, "up", "down")
        verdict = separate(X, y, p=p, tol=1e-2)
        best = MaxMarginClassifier(C=np.inf, p=p, tol=1e-4).fit(X, y).certificate_
        assert best.lower <= verdict.hi
        assert verdict.lo <= best.upper
        assert verdict.lo >= (1.0 - 1e-2) * verdict.hi
        assert verdict.classes == ("down", "up")
        verdict.verify(X, y)

    def test_sparse_rows_give_valid_proofs(self):
        X, y = np.round(flipped(200, 12, 9)[0]), flipped(200, 12, 9)[1]
        dense = separate(X, y)
        for matrix in (sp.csr_matrix, sp.csc_matrix, sp.coo_array):
            S = matrix(X)
            assert separate(S, y).separable is dense.separable is False
            separate(S, y).verify(X, y)
            dense.verify(S, y)

    def test_large_data_are_decided_by_a_linear_program(self, monkeypatch):
        monkeypatch.setattr(search, "MAX_DENSE_ENTRIES", 0)
        X, y = flipped(600, 30, 4)
        verdict = separate(sp.csr_matrix(X), y)
        assert isinstance(verdict, Inseparable)
        assert verdict.method.startswith("a linear program")
        edge = narrow(np.random.default_rng(0), True)
        assert separate(edge.X, edge.y, tol=np.inf).verify(edge.X, edge.y).separable

    @pytest.mark.parametrize("bias", [True, False])
    def test_wide_data_are_decided_by_the_smoothed_perceptron(self, bias):
        rng = np.random.default_rng(0)
        X, y = (
            100.0 + rng.standard_normal((60, 2000)) * 10.0 ** rng.uniform(-3, 3, 2000),
            rng.integers(0, 2, 60),
        )
        for matrix in (X, sp.csr_matrix(X)):
            verdict = separate(matrix, y, bias=bias, tol=np.inf)
            assert isinstance(verdict, Separable)
            assert verdict.method == "the smoothed Perceptron"
            verdict.verify(X, y)
        X[1], y[1] = X[0], 1 - y[0]  # nearly equal rows need more than a hundred steps
        X[1, 0] += 2.0**-20
        verdict = separate(X, y, bias=bias, tol=np.inf)
        assert isinstance(verdict, Separable)
        assert verdict.method.startswith("least squares")
        verdict.verify(X, y)

    def test_float32_rows_are_compared_exactly(self):
        X = np.array([[0.1], [0.1], [0.2]], dtype=np.float32)
        assert separate(X, [0, 1, 1]).verify(X, [0, 1, 1]).separable is False
        wide = X.astype(float)
        wide[1] = 0.1  # differs from float32(0.1)
        assert separate(wide, [0, 1, 1]).separable is False
        assert separate(wide, [1, 0, 1]).separable

    def test_input_arrays_are_not_modified(self):
        X = sp.csr_matrix((np.array([1.0, 0.0, 2.0]), np.array([1, 0, 1]), np.array([0, 2, 3])), (2, 2))
        before = X.copy()
        separate(X, [0, 1]).verify(X, [0, 1])
        assert X.nnz == 3
        assert np.array_equal(X.indices, before.indices)


class TestContradictions:
    def test_equal_rows_of_both_classes_are_a_proof(self):
        X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [0.0, -0.0], [-0.0, 0.0]])
        weights, distinct = trivial_certificate(X, np.array([1.0, 1.0, -1.0, 1.0, 1.0]), True)
        assert weights == {0: Fraction(1, 2), 2: Fraction(1, 2)}
        assert distinct.tolist() == [0, 1, 3]

    def test_opposite_and_zero_rows_are_proofs_without_a_bias(self):
        X = np.array([[1.0, 3.0], [-0.1, -0.3], [0.5, 1.5]])
        weights, _ = trivial_certificate(X, np.ones(3), False)
        assert weights is None  # three times the float 0.1 differs from the float 0.3
        weights, _ = trivial_certificate(X * [[1], [1], [-1]], np.ones(3), False)
        assert weights == {0: Fraction(1, 3), 2: Fraction(2, 3)}
        weights, _ = trivial_certificate(sp.csr_matrix(X * [[1], [1], [0]]), np.ones(3), False)
        assert weights == {2: Fraction(1)}
        verdict = separate([[1.0], [0.0]], [0, 1], bias=False)
        assert "lies on every hyperplane" in str(verdict)


class TestVerify:
    def test_false_proofs_are_refused(self):
        X, y = flipped()
        verdict = separate(X, y)
        other = X.copy()
        other[verdict.support[3], 2] = np.nextafter(other[verdict.support[3], 2], 9.0)
        with pytest.raises(CertificateError, match="column 2"):
            verdict.verify(other, y)
        a, b, *rest = verdict.weights
        with pytest.raises(CertificateError, match=r"balanced|column"):
            replace(verdict, weights=(b, a, *rest)).verify(X, y)
        with pytest.raises(CertificateError, match="sum one"):
            replace(verdict, weights=(-a, b, *rest)).verify(X, y)
        with pytest.raises(CertificateError, match="one weight"):
            replace(verdict, support=np.zeros_like(verdict.support)).verify(X, y)
        with pytest.raises(CertificateError, match="349 now"):
            verdict.verify(X[:-1], y[:-1])
        with pytest.raises(CertificateError, match="classes"):
            verdict.verify(X, y * 2)

    def test_false_margins_are_refused(self):
        y = np.array([0, 1, 1, 1])
        verdict = separate(SQUARE, y)
        with pytest.raises(CertificateError, match="margin fails"):
            replace(verdict, lo=verdict.lo * 1.001).verify(SQUARE, y)
        with pytest.raises(CertificateError, match="upper bound fails"):
            replace(verdict, hi=verdict.hi * 0.999).verify(SQUARE, y)
        with pytest.raises(CertificateError, match="margin fails"):
            replace(verdict, b=verdict.b + 5.0).verify(SQUARE, y)
        with pytest.raises(CertificateError, match="2 features"):
            verdict.verify(SQUARE[:, :1], y)


class TestLimits:
    def test_timeout_gives_an_undecided_verdict(self):
        X, y = flipped()
        verdict = separate(X, y, max_time=1e-9)
        assert isinstance(verdict, Undecided)
        assert verdict.separable is None
        assert verdict.verify(X, y).hi >= 0.0
        assert "max_time" in str(verdict)
        assert verdict.support.size == verdict.alpha.size
        with pytest.raises(CertificateError, match="upper bound fails"):
            replace(verdict, hi=-1.0).verify(X, y)

    def test_too_large_proofs_give_an_undecided_verdict(self, monkeypatch):
        monkeypatch.setattr("maxmargin.numerics.rational.MAX_COLUMNS", 6)
        verdict = separate(*flipped())
        assert isinstance(verdict, Undecided)
        assert "beyond exact reach" in verdict.reason
        assert verdict.hi < 1e-10

    @pytest.mark.parametrize(
        ("X", "y", "options", "message"),
        [
            ([[1.0, np.nan], [1.0, 2.0]], [0, 1], {}, "fill or drop"),
            (sp.csr_matrix([[1.0, np.inf], [1.0, 2.0]]), [0, 1], {}, "fill or drop"),
            ([["a"], ["b"]], [0, 1], {}, "must hold numbers"),
            ([1.0, 2.0], [0, 1], {}, "two dimensions"),
            (np.zeros((0, 3)), [], {}, "empty"),
            (SQUARE, [0, 1], {}, "one label for each"),
            (SQUARE, [1, 1, 1, 1], {}, "rows of both"),
            (SQUARE, [1, 2, 3, 1], {}, "one class at a time"),
            (SQUARE, [1, np.nan, 3, 1], {}, "not known"),
            (SQUARE, np.array([1, "a", 1, "a"], dtype=object), {}, "one type"),
            (SQUARE, [0, 1, 1, 1], {"p": 0.5}, "from 1 to inf"),
            (SQUARE, [0, 1, 1, 1], {"p": "2"}, "must be a number"),
            (SQUARE, [0, 1, 1, 1], {"tol": 0.0}, "tol must be positive"),
            (SQUARE, [0, 1, 1, 1], {"max_time": -1}, "positive number of seconds"),
            (SQUARE, [0, 1, 1, 1], {"bias": 1}, "True or False"),
        ],
    )
    def test_invalid_input_gives_a_one_line_error(self, X, y, options, message):
        with pytest.raises(ValueError, match=message) as caught:
            separate(X, y, **options)
        assert "\n" not in str(caught.value)


class TestExactArithmetic:
    @pytest.mark.parametrize("bits", [2, 30, 200])
    def test_null_vectors_are_exact(self, bits):
        rng = np.random.default_rng(bits)
        for k in (1, 2, 7, 20):
            rows = [
                [int.from_bytes(rng.bytes(bits // 8 + 1)) - (1 << bits) for _ in range(k)] for _ in range(k)
            ]
            if k > 2 and bits > 2:
                assert null_vector(rows) is None
            thin = rows[:-1] or [[0]]
            z = null_vector(thin)
            assert z is not None
            assert any(z)
            assert all(sum(a * b for a, b in zip(row, z, strict=True)) == 0 for row in thin)

    def test_multiples_of_the_prime_are_handled(self):
        assert null_vector([[67108859, 0], [0, 1]]) is None
        assert null_vector([[67108859, 2 * 67108859]]) in ([-2, 1], [2, -1])

    def test_too_many_columns_raise_beyond_reach_error(self):
        with pytest.raises(BeyondReachError):
            null_vector([[0] * 2049])

    def test_integer_rows_equal_the_scaled_rows(self):
        X = np.array([[0.1, 2.0**-60, 0.0], [-3.0, 1.0, 0.0]])
        rows = IntegerRows(X, np.array([1.0, -1.0]), True)
        for i, sign in enumerate((1, -1)):
            places, values = rows.row(i)
            for j, value in zip(places[:-1], values[:-1], strict=True):
                assert value == sign * Fraction(X[i, j]) * Fraction(2) ** int(rows.exponents[j])
            assert values[-1] == sign << rows.bits

    def test_corrals_approach_and_reach_the_nearest_point(self):
        rng = np.random.default_rng(7)
        X = np.round(rng.standard_normal((30, 3)) + 1.5, 1)
        rows = IntegerRows(X, np.ones(30), False)
        last = None
        for corral in nearest_points(rows, {0: 1.0}):
            square = Fraction(sum(v * v for v in corral.direction), corral.total**2)
            assert last is None or square < last
            last = square
        if any(corral.direction):
            least = min(rows.product(i, corral.direction) for i in range(30))
            assert Fraction(least, corral.total) == square


class TestPage:
    def test_page_code_runs(self, capsys):
        scope = {}
        for block in re.findall(
            r"```python\n(.*?)```", (ROOT / "docs" / "tutorials" / "separability.md").read_text(), re.S
        ):
            exec(block, scope)
        assert "not separable" in capsys.readouterr().out

    def test_readme_code_runs(self, capsys):
        (block,) = [
            block
            for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
            if "import separate" in block
        ]
        exec(block, {})
        assert capsys.readouterr().out.startswith("not separable: rows 0, 1, 2, 3 (4 in all)")
