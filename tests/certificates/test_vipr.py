"""Verdicts as VIPR files: they state the data exactly, and faults in them are found, also by viprchk."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from vipr_checker import File, accepted, parse

from maxmargin import CertificateError, Inseparable, Separable, Undecided, separate

INF = np.inf
VIPRCHK = shutil.which("viprchk")
BUILD = (  # g++ alone: its CMake file asks for TBB, which viprchk does not need
    "viprchk is not on the path. To build it: get https://github.com/scipopt/vipr and GMP (Debian: libgmp-dev). In its "
    "folder code: echo '#define VIPR_VERSION_MAJOR 1' > CMakeConfig.hpp; "
    "echo '#define VIPR_VERSION_MINOR 1' >> CMakeConfig.hpp; "
    "g++ -O2 -DNDEBUG -std=c++14 -I. viprchk.cpp -lgmpxx -lgmp -o viprchk. "
    "Version 1.0 checks a point against one constraint only: take 1.1 or later."
)
FILES = 100  # as many again are mutated
KINDS = ((2.0, True), (2.0, False), (1.0, True), (INF, True), (1.0, False), (INF, False), (1.5, True))


def written(path, verdict, X, y, **options) -> str:
    """Return the text of the file of a verdict."""
    verdict.write_vipr(path, X, y, **options)
    return path.read_text()


def problem(k: int) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """Return rows, labels, p and bias of a small problem: every third one has reversed labels."""
    rng = np.random.default_rng(k)
    n, d = int(rng.integers(4, 13)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) if k % 2 else rng.integers(-3, 4, (n, d)) / 4.0
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    X[X @ rng.standard_normal(d) * y < 0.0] *= -1.0
    if k % 3 == 0:
        y[: n // 3] *= -1
    return X, y, *KINDS[k % len(KINDS)]


def signed_rows(file: File) -> dict[str, tuple[list[Fraction], Fraction]]:
    """Return y_i x_i and y_i for the constraints of rows: a weight is one variable, or the difference of two."""
    found = {}
    for constraint in file.constraints:
        if constraint.name.startswith("row"):
            named = {file.variables[k]: value for k, value in constraint.terms.items()}
            d = sum(name[0] in "wu" for name in file.variables)
            x = [named.get(f"w{j}", named.get(f"u{j}", Fraction(0))) for j in range(d)]
            assert all(named.get(f"v{j}", -x[j]) == -x[j] for j in range(d))
            found[constraint.name] = x, named.get("b", Fraction(0))
    return found


def undecided(known: Separable) -> Undecided:
    """Return the verdict of a search that has only the upper bound of another one."""
    fields = {name: getattr(known, name) for name in ("hi", "p", "bias", "classes", "features")}
    certificate = replace(known.certificate, lower=0.0)
    return Undecided(reason="max_time", method="", seconds=0.0, certificate=certificate, **fields)


class TestFiles:
    def test_files_state_the_data_and_the_verdict_exactly(self, tmp_path):
        seen = set()
        for k in range(42):
            X, y, p, bias = problem(k)
            stored = sp.csr_matrix(X) if k % 5 == 0 else X
            verdict = separate(stored, y, p=p, bias=bias)
            file = parse(written(tmp_path / "file.vipr", verdict, stored, y)).check()
            seen.add((type(verdict), p in (1.0, INF)))
            stated = range(y.size)
            if isinstance(verdict, Inseparable):
                assert file.infeasible
                stated = verdict.support.tolist()
            elif p in (1.0, INF):
                assert isinstance(verdict, Separable)
                # the range holds all that the verdict claims, up to the rounding of its dual variables
                assert 0 < Fraction(verdict.lo) <= file.lo <= file.hi <= Fraction(verdict.hi * (1 + 1e-9))
            else:
                assert (file.lo, file.hi, file.objective) == (None, 0, {})
                assert len(file.points) == 1
            rows = signed_rows(file)
            assert set(rows) == {f"row{i}" for i in stated}
            for i in stated:
                x, constant = rows[f"row{i}"]
                assert x == [Fraction(value) * int(y[i]) for value in X[i].tolist()]
                assert constant == (int(y[i]) if bias else 0)
        assert len(seen) == 4

    @pytest.mark.parametrize("p", [1.0, 2.0, INF])
    @pytest.mark.parametrize("exponent", [-300, 0, 300])
    def test_numbers_of_any_size_are_written_exactly(self, tmp_path, p, exponent):
        # the last row lies 2^-53 beside the line between two rows of the other class
        X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
        for last, separable in ((0.5, False), (0.5 - 2.0**-53, True)):
            X[3] = last
            scaled = X * [2.0**exponent, 1.0]
            verdict = separate(scaled, [0, 1, 1, 0], p=p)
            file = parse(written(tmp_path / "file.vipr", verdict, scaled, [0, 1, 1, 0])).check()
            assert file.infeasible is not separable

    def test_numbers_of_thousands_of_digits_are_written(self, tmp_path):
        # rows 2^-1000 e_k - e_(k - 1): each weight is 2^-1000 times the one before, and the last needs 16,000 bits
        d, y = 16, np.where(np.arange(17) % 2 == 0, 1, -1)
        X = np.zeros((d + 1, d))
        X[range(d), range(d)] = 2.0**-1000
        X[range(1, d + 1), range(d)] = -1.0
        X *= y[:, None]
        alpha = [Fraction(1, 2 ** (1000 * k)) for k in range(d + 1)]
        verdict = Inseparable(
            support=np.arange(d + 1), weights=tuple(value / sum(alpha) for value in alpha), rows=d + 1,
            bias=False, classes=(-1, 1), features=d, method="", seconds=0.0,
        )  # fmt: skip
        text = written(tmp_path / "file.vipr", verdict, X, y)
        assert parse(text).check().infeasible
        assert max(map(len, text.split())) > 2 * 4300

    def test_rational_separators_are_written(self, tmp_path):
        X = np.array([[2.0**-1000, 0.0], [1.0, -(2.0**-1000)]])
        verdict = separate(X, [1, 0], bias=False, tol=INF)
        assert isinstance(verdict, Separable)
        assert accepted(written(tmp_path / "file.vipr", verdict, X, [1, 0]))

    @pytest.mark.parametrize(
        ("rows", "labels"), [([[0.0, 0.0], [1.0, 2.0]], [0, 1]), ([[1.0], [3.0]], [0, 1])]
    )
    def test_proofs_without_an_intercept(self, tmp_path, rows, labels):
        verdict = separate(np.array(rows), labels, bias=False)
        assert parse(written(tmp_path / "file.vipr", verdict, np.array(rows), labels)).check().infeasible

    @pytest.mark.parametrize("p", [1.0, INF])
    def test_undecided_verdicts_have_a_bound(self, tmp_path, p):
        X, y, *_ = problem(1)
        known = separate(X, y, p=p)
        assert isinstance(known, Separable)
        verdict = undecided(known)
        file = parse(written(tmp_path / "file.vipr", verdict, X, y)).check()
        assert file.lo == 0 < file.hi <= Fraction(known.hi * (1 + 1e-9))

    def test_rows_and_columns_are_counted_from_first(self, tmp_path):
        X, y, p, bias = problem(1)
        text = written(tmp_path / "file.vipr", separate(X, y, p=p, bias=bias), X, y, first=1)
        assert "row1 " in text
        assert "row0" not in text
        assert all(line.startswith("% ") for line in text.split("VER")[0].splitlines())


class TestRefusals:
    def test_other_data_leave_the_old_file(self, tmp_path):
        path = tmp_path / "file.vipr"
        path.write_text("old")
        X, y, *_ = problem(1)
        verdict = separate(X, y)
        with pytest.raises(CertificateError):
            verdict.write_vipr(path, X, -y)
        with pytest.raises(CertificateError, match="features"):
            verdict.write_vipr(path, X[:, :-1], y)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_verdicts_without_a_linear_program_are_refused_with_a_remedy(self, tmp_path):
        X, y, *_ = problem(1)
        verdict = separate(X, y, kernel="rbf", gamma=1.0)
        with pytest.raises(ValueError, match="verify"):
            verdict.write_vipr(tmp_path / "file.vipr", X, y)
        with pytest.raises(ValueError, match="p=inf"):
            undecided(separate(X, y)).write_vipr(tmp_path / "file.vipr", X, y)
        assert not list(tmp_path.iterdir())


def changed(words: list[str], place: int, rng: np.random.Generator) -> None:
    """Change the rational number at a place, which stays in lowest terms."""
    old = Fraction(words[place])
    new = (old + 1, old * 2, -old, old - Fraction(1, 10**6), old * Fraction(999, 1000), Fraction(0))
    words[place] = str(rng.choice([value for value in new if value != old]))


def mutated(text: str, kind: str, rng: np.random.Generator) -> str | None:
    """Return a file with one number changed; None where it has none of this kind."""
    lines = [line.split(" ") for line in text.splitlines()]
    at = {words[0]: k for k, words in enumerate(lines) if words[0].isupper()}
    lo, hi = {
        "coefficient": (at["CON"] + 1, at["RTP"]), "right": (at["CON"] + 1, at["RTP"]),
        "relation": (at["RTP"], at["RTP"] + 1), "point": (at["SOL"] + 1, at["DER"]),
        "derived": (at["DER"] + 1, len(lines)), "multiplier": (at["DER"] + 1, len(lines)),
    }[kind]  # fmt: skip
    if lo == hi:
        return None
    words = lines[int(rng.integers(lo, hi))]
    places = {
        "coefficient": range(5, len(words), 2), "right": [2], "point": range(3, len(words), 2), "derived": [2],
        "relation": [k for k, word in enumerate(words) if word[-1].isdigit()],
        "multiplier": range(words.index("lin") + 3, len(words) - 2, 2) if "lin" in words else [],
    }[kind]  # fmt: skip
    if kind == "relation" and (not places or rng.random() < 0.2):
        words[:] = ["RTP", "range", "1", "2"] if "infeas" in words else ["RTP", "infeas"]
    elif not places:
        return None
    else:
        changed(words, int(rng.choice(places)), rng)
    return "\n".join(map(" ".join, lines)) + "\n"


MUTATIONS = ("multiplier", "coefficient", "right", "relation", "point", "derived")


def pairs(path, count: int):
    """Yield a file and a mutation of it, of each kind in turn."""
    for k in range(count):
        X, y, p, bias = problem(k)
        text, rng = written(path, separate(X, y, p=p, bias=bias), X, y), np.random.default_rng(k)
        kinds = (*MUTATIONS[k % len(MUTATIONS) :], *MUTATIONS)
        yield text, next(filter(None, (mutated(text, kind, rng) for kind in kinds)))


class TestMutations:
    def test_false_bounds_are_refused(self, tmp_path):
        X, y, *_ = problem(1)
        for p in (1.0, INF):
            text = written(tmp_path / "file.vipr", separate(X, y, p=p), X, y)
            file, tiny = parse(text), Fraction(1, 10**40)
            old = f"RTP range {file.lo} {file.hi}"
            for lo, hi, holds in (
                (file.lo - tiny, file.hi, True), (file.lo + tiny, file.hi, False), (file.lo, file.hi - tiny, False),
                (file.hi + 1, file.hi + 2, False),
            ):  # fmt: skip
                assert text.count(old) == 1
                assert accepted(text.replace(old, f"RTP range {lo} {hi}")) is holds
            assert not accepted(text.replace(old, "RTP infeas"))
            assert not accepted(text + "1\n")
            assert not accepted(text.rpartition("{")[0])

    def test_every_changed_multiplier_of_a_row_is_refused(self, tmp_path):
        for k in range(0, 60, 3):
            X, y, p, bias = problem(k)
            verdict = separate(X, y, p=p, bias=bias)
            text = written(tmp_path / "file.vipr", verdict, X, y)
            head, _, proof = text.rpartition("{ lin ")
            words = proof.split()
            if not isinstance(verdict, Inseparable):
                continue
            for place, row in enumerate(verdict.support.tolist()):
                other = words.copy()
                other[2 + 2 * place] = str(Fraction(words[2 + 2 * place]) + Fraction(1, 10**30))
                zero = not bias and not X[row].any()  # 0 >= 1 contradicts itself, whatever its multiplier
                assert accepted(f"{head}{{ lin {' '.join(other)}\n") is zero

    def test_most_random_mutations_are_refused(self, tmp_path):
        found = [(accepted(text), accepted(other)) for text, other in pairs(tmp_path / "file.vipr", 60)]
        assert all(whole for whole, _ in found)
        # others stay true: a constraint that the proof does not use, or a wider range
        assert sum(not broken for _, broken in found) >= 30


@pytest.mark.skipif(VIPRCHK is None, reason=BUILD)
def test_viprchk_agrees_on_files_and_mutations(tmp_path):
    differing, refused, path = [], 0, tmp_path / "file.vipr"
    for k, both in enumerate(pairs(path, FILES)):
        for text in both:
            path.write_text(text)
            done = subprocess.run([str(VIPRCHK), str(path)], capture_output=True, check=False)
            refused += not accepted(text)
            if (done.returncode == 0) is not accepted(text):
                differing.append((k, text is both[0], done.stdout[-200:], done.stderr[-200:]))
    assert differing == []
    assert 0 < refused <= FILES


@pytest.mark.parametrize("first", [-1, 0.5, "1"])
def test_rows_are_counted_from_a_whole_number(tmp_path, first):
    X, y = np.array([[1.0], [-1.0]]), np.array([1, -1])
    with pytest.raises(ValueError, match="give 0 or 1"):
        separate(X, y).write_vipr(tmp_path / "proof.vipr", X, y, first=first)
    assert not (tmp_path / "proof.vipr").exists()
