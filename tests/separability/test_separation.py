"""Separability: verdicts at the edge of separability are correct and decided."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from edge import KINDS, cancels, edges, separates, simplex
from effort import examples, thorough
from scipy.spatial import ConvexHull

from maxmargin import CertificateError, Inseparable, MaxMarginClassifier, Status, Undecided, separate

RADIUS = 1e-11  # the radius is lowered by 1e-12 (d + 4) of itself, here at most 7e-12
SQUARE = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])


def flipped(n: int = 350, d: int = 10, flips: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows with linear labels, a few of them flipped: SVC with a large C takes minutes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0.0, 1, -1)
    y[rng.choice(n, flips, replace=False)] *= -1
    return X, y


class TestVerdicts:
    @thorough
    def test_verdicts_are_correct_at_the_edge_of_separability(self):
        narrowest, kinds = np.inf, set()
        for edge in edges(examples(84, 600), 0):
            verdict = separate(edge.X, edge.y, bias=edge.bias, tol=np.inf)
            assert verdict.separable is edge.separable, edge
            assert verdict.verify(edge.X, edge.y) is verdict
            kinds.add(edge.kind)
            if isinstance(verdict, Inseparable):  # checked by independent arithmetic
                alpha = dict(zip(verdict.support.tolist(), verdict.weights, strict=True))
                assert cancels(edge.X, edge.y, alpha, edge.bias)
                assert len(alpha) <= edge.X.shape[1] + 1 + edge.bias
                assert sum(alpha.values()) == 1
            else:
                point = [Fraction(v) for v in [*verdict.w.tolist(), verdict.b]]
                assert separates(edge.X, edge.y, point[:-1], point[-1])
                narrowest = min(narrowest, verdict.hi / np.abs(edge.X).max())
        assert kinds == {kind.__name__ for kind in KINDS}
        assert narrowest < 1e-8

    def test_tiny_margins_are_decided_for_columns_of_any_size(self):
        rng = np.random.default_rng(0)
        for d in (3, 12, 20):
            X = np.round(rng.standard_normal((5 * d, d)) * 2.0**20) / 2.0**20
            w = np.append(1.0, np.round(rng.standard_normal(d - 1) * 64) / 64)
            y = np.where(np.arange(5 * d) % 2 == 0, 1.0, -1.0)
            X[:, 0] = y * 1e-12 - X[:, 1:] @ w[1:]
            exact = [Fraction(v) for v in w.tolist()]
            keep = [i for i in range(y.size) if separates(X[i : i + 1], y[i : i + 1], exact, Fraction(0))]
            X, y = X[keep] * 2.0 ** rng.integers(-60, 61, d), y[keep]
            verdict = separate(X, y, bias=False, tol=np.inf)
            assert 0.0 < verdict.verify(X, y).lo <= verdict.hi

    def test_one_unit_in_the_last_place_decides_the_verdict(self):
        rng = np.random.default_rng(0)
        for shift, separable in 5 * [(0, False), (1, False), (-1, True)]:
            corners = np.round(rng.uniform(1.0, 2.0, (3, 2)) * 2.0**30) / 2.0**30
            corners[:2, 0], corners[2, 1] = (1.0, 2.0), 4.0  # the third is above the other two
            X = np.vstack([corners, 0.5 * (corners[0] + corners[1])])  # the last is on their edge, exactly
            X[3, 1] += shift * 2.0**-51
            y = np.array([0, 0, 0, 1])
            verdict = separate(X, y, tol=np.inf)
            assert separable is simplex(X, 2.0 * y - 1.0, True)
            digits = separable and isinstance(verdict, Undecided) and "more digits" in verdict.reason
            assert digits or verdict.separable is separable
            verdict.verify(X, y)

    def test_float32_rows_are_compared_exactly(self):
        X = np.array([[0.1], [0.1], [0.2]], dtype=np.float32)
        assert separate(X, [0, 1, 1]).verify(X, [0, 1, 1]).separable is False
        wide = X.astype(float)
        wide[1] = 0.1  # differs from float32(0.1)
        assert separate(wide, [0, 1, 1]).separable is False
        assert separate(wide, [1, 0, 1]).separable

    def test_opposite_and_zero_rows_are_proofs_without_a_bias(self):
        X = np.array([[1.0, 1 / 3], [-3.0, -1.0], [0.5, 1 / 6]])  # three times the float 1/3 differs from 1
        verdict = separate(X, [1, 1, 0], bias=False)
        assert verdict.support.tolist() == [0, 2]
        assert verdict.weights == (Fraction(1, 3), Fraction(2, 3))
        zero = separate(sp.csr_matrix(X * [[1], [1], [0]]), [0, 0, 1], bias=False)
        assert (zero.support.tolist(), zero.weights) == ([2], (1,))
        equal = separate(np.vstack([X, X[1]]), [0, 0, 1, 1])
        assert (equal.support.tolist(), equal.weights) == ([1, 3], (Fraction(1, 2),) * 2)

    def test_exclusive_or_has_equal_weights(self):
        verdict = separate(SQUARE, [1, 1, 0, 0])
        assert verdict.weights == (Fraction(1, 4),) * 4
        assert verdict.radius == pytest.approx(2.0**-1.5, rel=RADIUS)

    @pytest.mark.parametrize(("p", "q"), [(1.0, np.inf), (1.5, 3.0), (2.0, 2.0), (np.inf, 1.0)])
    def test_radius_is_that_of_the_largest_ball_and_every_hyperplane_misses_by_it(self, p, q):
        rng = np.random.default_rng(3)
        X, y = flipped(60, 3, 6)
        verdict = separate(X, y, p=p)
        assert verdict.radius > 0.0
        for w in rng.standard_normal((200, 3)):
            z = X @ w
            b = -0.5 * (z[y > 0].min() + z[y < 0].max())
            # products of three numbers: a few eps
            assert (y * (z + b)).min() <= -verdict.radius * np.linalg.norm(w, q) * (1.0 - 1e-12)
        corners = np.array([[3.0, 1.0, 0.0], [-1.0, 2.0, 1.0], [-1.0, -2.0, 2.0], [0.0, -1.0, -3.0]])
        *normals, offsets = ConvexHull(corners).equations.T
        ball = (-offsets / np.linalg.norm(normals, q, axis=0)).min()
        signs = np.array([1, -1, 1, -1])
        found = separate(signs[:, None] * corners, signs, p=p, bias=False)
        assert found.radius == pytest.approx(ball, rel=RADIUS)

    @pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
    def test_margin_interval_agrees_with_the_fit(self, p):
        rng = np.random.default_rng(4)
        X = rng.standard_normal((40, 4))
        y = np.where(X @ [1.0, -1.0, 0.5, 0.0] > 0.2, "up", "down")
        verdict = separate(X, y, p=p, tol=1e-2)
        best = MaxMarginClassifier(C=np.inf, p=p, tol=1e-4).fit(X, y).certificate_
        assert best.lower <= verdict.hi
        assert verdict.lo <= best.upper
        assert verdict.lo >= (1.0 - 1e-2) * verdict.hi
        assert verdict.classes == ("down", "up")
        copies, loose = np.r_[np.repeat(np.arange(10), 3), 10:40], {"p": p, "tol": np.inf}
        one, other = separate(X, y, **loose), separate(X[copies], y[copies], **loose)
        assert other.hi == pytest.approx(one.hi, rel=1e-9)
        verdict.verify(X, y)

    @pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
    @pytest.mark.parametrize(
        "X",
        [
            [[1e50, 1e50], [-1e50, -1e50]],
            [[1e50, 1e50], [1e50, -1e50], [3e49, 6e49], [0.0, 0.0]],
            [[1e-200, 0.0], [-1e-200, 0.0], [0.0, 1.0]],
        ],
    )
    def test_verdicts_hold_for_all_entries_that_are_accepted(self, X, p):
        X, y = np.array(X), np.array([1] + [0] * (len(X) - 1))
        verdict = separate(X, y, p=p)
        assert verdict.verify(X, y).separable
        assert 0.0 < verdict.lo < np.inf


class TestMethods:
    @pytest.mark.parametrize("storage", [sp.csr_matrix, sp.csc_matrix, sp.coo_array])
    def test_sparse_rows_give_valid_proofs_and_are_not_changed(self, storage):
        X, y = flipped(200, 12, 9)
        X = np.round(X)
        X[:, 7] = 0.0  # a column without entries
        S = storage(X)
        S.data[:9] = 0.0  # stored zeros
        X, count = S.toarray(), S.nnz
        assert separate(S, y).verify(X, y).separable is separate(X, y).verify(S, y).separable is False
        assert separate(S, X[:, 0] > 0.5).verify(X, X[:, 0] > 0.5).w[7] == 0.0
        assert S.nnz == count

    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
    def test_few_of_many_rows_prove_that_there_is_no_separator(self, storage):
        """Three of 20,000 labels are wrong. The proof holds for all rows, of which it has one more than unknowns."""
        X, y = flipped(20_000, 3, 3)
        verdict = separate(storage(X), y)
        assert isinstance(verdict, Inseparable)
        assert verdict.support.size <= 5
        assert cancels(X, y, dict(zip(verdict.support.tolist(), verdict.weights, strict=True)), True)
        assert verdict.verify(X, y) is verdict
        model = MaxMarginClassifier(np.inf, random_state=0).fit(storage(X), y)
        assert model.status_ is Status.INSEPARABLE

    def test_many_rows_with_a_tiny_margin_are_separable(self):
        X, y = flipped(20_000, 3, 0)
        verdict = separate(X, y, tol=np.inf)
        assert verdict.separable
        assert separates(X, y, [Fraction(v) for v in verdict.w.tolist()], Fraction(verdict.b))

    @pytest.mark.parametrize(("bias", "storage"), [(True, np.asarray), (False, sp.csr_matrix)])
    def test_wide_data_are_decided_by_the_smoothed_perceptron(self, bias, storage):
        rng = np.random.default_rng(0)
        X = 100.0 + rng.standard_normal((60, 1700)) * 10.0 ** rng.uniform(-3, 3, 1700)
        y = rng.integers(0, 2, 60)
        verdict = separate(storage(X), y, bias=bias, tol=np.inf)
        assert verdict.verify(X, y).separable
        assert verdict.method == "the smoothed Perceptron"
        X[1], y[1] = X[0], 1 - y[0]  # nearly equal rows need more than a hundred steps
        X[1, 0] += 2.0**-20
        verdict = separate(storage(X), y, bias=bias, tol=np.inf)
        assert verdict.verify(X, y).separable
        assert verdict.method.startswith("least squares")

    def test_sparse_rows_of_many_columns_are_decided_by_a_linear_program(self):
        wide = sp.csr_array((np.ones(8100), (np.repeat(np.arange(300), 27), np.arange(8100))))
        X, y = sp.block_diag([SQUARE, wide], format="csr"), np.append([1, 1, 0, 0], np.arange(300) % 2)
        verdict = separate(X, y)
        assert verdict.method.startswith("a linear program")
        assert verdict.verify(X, y).support.tolist() == [0, 1, 2, 3]

    def test_timeouts_leave_it_undecided(self):
        X, y = flipped()
        verdict = separate(X, y, max_time=1e-9)
        assert isinstance(verdict.verify(X, y), Undecided)
        assert verdict.separable is None
        assert "max_time" in str(verdict)
        with pytest.raises(CertificateError, match="upper bound"):
            replace(verdict, hi=-1.0).verify(X, y)

    @pytest.mark.parametrize(
        ("X", "y", "options", "words"),
        [
            ([[1.0, np.nan], [1.0, 2.0]], [0, 1], {}, "contains NaN: column 1"),
            (SQUARE, [0, 1], {}, "one label for each of the 4 rows"),
            (SQUARE, [1, 2, 3, 1], {}, "one class at a time"),
            (SQUARE, np.array([0, "a", 1, "b"], object), {}, "names of one type"),
            ([["a"], ["b"]], [0, 1], {}, "text"),
            ([1.0, 2.0], [0, 1], {}, "two dimensions"),
            (np.empty((2, 0)), [0, 1], {}, "X is empty"),
            (SQUARE, [0, 1, 1, 1], {"algorithm": "nix"}, "'nix'"),
            (SQUARE, [0, 1, 1, 1], {"p": 0.5}, "p must be"),
            (SQUARE, [0, 1, 1, 1], {"max_time": -1}, "max_time must be"),
            (SQUARE, [0, 1, 1, 1], {"bias": 1}, "bias must be"),
        ],
    )
    def test_invalid_input_gives_a_one_line_error(self, X, y, options, words):
        with pytest.raises(ValueError, match=words) as caught:
            separate(X, y, **options)
        assert "\n" not in str(caught.value)


class TestVerify:
    def test_false_proofs_are_refused(self):
        X, y = flipped()
        verdict = separate(X, y)
        a, b, *rest = verdict.weights
        for change, words in (
            ({"weights": (b, a, *rest)}, "balanced|column"),
            ({"weights": (2 * a, 2 * b, *(2 * c for c in rest))}, "sum one"),
            ({"support": np.zeros_like(verdict.support)}, "one weight"),
            ({"rows": 349}, "349"),
            ({"classes": (-2, 2)}, "classes"),
            ({"radius": verdict.radius * (1.0 + 1e-6)}, "radius fails"),
            ({"radius": -1.0}, "radius fails"),
            ({"radius": np.nan}, "radius fails"),
            ({"support": verdict.support + 350}, "rows that the data do not have"),
            ({"support": verdict.support - 350}, "rows that the data do not have"),
        ):
            with pytest.raises(CertificateError, match=words):
                replace(verdict, **change).verify(X, y)
        with pytest.raises(CertificateError, match="balanced"):
            replace(separate(X, y, bias=False), bias=True).verify(X, y)
        false = replace(separate([[1.0], [2.0]], [0, 1], bias=False), weights=(Fraction(2), Fraction(-1)))
        with pytest.raises(CertificateError, match="positive"):  # of separable rows, with 2 (1) - 1 (2) = 0
            false.verify([[-1.0], [2.0]], [0, 1])
        other = X.copy()
        other[verdict.support[3], 2] = np.nextafter(other[verdict.support[3], 2], 9.0)
        with pytest.raises(CertificateError, match="column 2"):
            verdict.verify(other, y)

    def test_a_radius_of_a_proof_without_a_ball_is_refused(self):
        X = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
        for found in (separate(X, [0, 1, 1]), separate(X, [0, 1, 1], kernel="poly", degree=2)):
            assert found.verify(X, [0, 1, 1]).radius == 0.0
            with pytest.raises(CertificateError, match="radius fails"):
                replace(found, radius=0.5).verify(X, [0, 1, 1])

    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("p", [1.0, 1.5, np.inf])
    def test_the_radius_of_rows_of_a_small_determinant_is_verified(self, p, bias):
        """The error of the inverse, which depends on the machine, is a part of the accepted rounding."""
        X, y = flipped(60, 3, 6)
        X = X @ np.array([[1.0, 1.0, 0.0], [0.0, 1e-5, 0.0], [0.0, 0.0, 1.0]])
        found = separate(X, y, p=p, bias=bias)
        assert found.verify(X, y).radius > 0.0
        assert found.verify(sp.csr_matrix(X), y) is found

    def test_separators_of_sparse_rows_are_those_of_dense_rows(self):
        """Sums of fewer terms have smaller rounding errors: the claim is compared in rational numbers."""
        rng, y = np.random.default_rng(0), np.arange(12) % 2
        for p in (1.0, 1.5, np.inf):
            for _ in range(5):
                X = rng.normal(size=(12, 25)) * 10.0 ** rng.integers(-6, 7, 25)
                X[rng.random(X.shape) < 0.9] = 0.0
                X[:, 0] += 1e-6 * (2 * y - 1)
                for fitted, given in ((X, sp.csr_matrix(X)), (sp.csr_matrix(X), X)):
                    verdict = separate(fitted, y, p=p)
                    assert verdict.separable
                    assert verdict.verify(given, y) is verdict
                with pytest.raises(CertificateError, match="margin fails"):
                    replace(verdict, lo=verdict.lo * (1.0 + 1e-3), hi=verdict.hi * 2.0).verify(X, y)

    def test_bounds_that_nothing_proves_are_refused(self):
        y = np.array([0, 1, 1, 1])
        found = separate(SQUARE, y)
        proof = replace(found.certificate, lower=-np.inf)
        undecided = Undecided(
            hi=found.hi,
            certificate=proof,
            reason="",
            bias=True,
            classes=(0, 1),
            features=2,
            method="",
            seconds=0.0,
        )
        assert undecided.verify(SQUARE, y) is undecided
        for verdict, change, words in (
            (undecided, {"lo": found.lo}, "lower bound fails"),
            (undecided, {"lo": np.nan}, "lower bound fails"),
            (undecided, {"certificate": replace(proof, lower=found.lo)}, "lower bound fails"),
            (undecided, {"certificate": replace(proof, upper=0.5 * found.lo)}, "upper bound fails"),
            (found, {"certificate": replace(proof, upper=np.nan)}, "upper bound fails"),
            (found, {"certificate": replace(proof, lower=2.0 * found.hi)}, "margin fails"),
        ):
            with pytest.raises(CertificateError, match=words):
                replace(verdict, **change).verify(SQUARE, y)

    def test_the_radius_of_tiny_weights_is_rounded_downwards(self):
        """Of two opposite rows without a bias the ball is the interval up to the shorter one."""
        rng = np.random.default_rng(0)
        for power in range(38, 50):
            short, long = rng.uniform(1.0, 10.0, 2) * (10.0**-power, 10.0**power)
            found = separate([[short], [long]], [0, 1], bias=False)
            assert (1.0 - RADIUS) * short <= found.radius <= short
            with pytest.raises(CertificateError, match="radius fails"):
                replace(found, radius=short * (1.0 + 1e-6)).verify([[short], [long]], [0, 1])

    def test_false_margins_are_refused(self):
        y = np.array([0, 1, 1, 1])
        verdict = separate(SQUARE, y)
        for change, words in (
            ({"lo": verdict.lo * (1.0 + 1e-12)}, "margin fails"),
            ({"hi": verdict.hi * 0.999}, "upper bound fails"),
            ({"b": verdict.b + 5.0}, "margin fails"),
            ({"lo": 0.0}, "margin fails"),
            ({"w": np.zeros(2)}, "margin fails"),
            ({"w": np.array([np.nan, 1.0])}, "separator fails"),
            ({"w": np.ones(3)}, "separator fails"),
            ({"b": np.inf}, "separator fails"),
            ({"certificate": replace(verdict.certificate, support=np.array([0, 7]))}, "names"),
            ({"certificate": replace(verdict.certificate, dual=-verdict.certificate.dual)}, "is negative"),
            ({"p": 1.0}, "about another problem"),
            ({"bias": False}, "about another problem"),
        ):
            with pytest.raises(CertificateError, match=words):
                replace(verdict, **change).verify(SQUARE, y)
