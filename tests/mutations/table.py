"""The faults that `run.py` puts into the code, one by one, with tests of the fast suite that find them."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """A fault.

    Attributes
    ----------
    what : str
        The fault in words.
    file : str
        Below src/maxmargin.
    old, new : str
        Text that occurs once in the file, and its replacement.
    tests : str
        Arguments of pytest.
    """

    what: str
    file: str
    old: str
    new: str
    tests: str


TRAJECTORIES = "tests/algorithms/test_trajectories.py"
THEOREMS = "tests/algorithms/test_theorems.py"
BATCH = "tests/algorithms/test_batch_solvers.py"
CERTIFICATES = "tests/certificates"

MUTATIONS = [
    # updates of the algorithms
    Mutation(
        "Perceptron: < for <= in the condition",
        "algorithms/online/perceptron.py",
        "return s <= limit  # a.y <= b",
        "return s < limit  # a.y <= b",
        TRAJECTORIES,
    ),
    Mutation(
        "local Perceptron: limit times the length, not its square",
        "algorithms/online/local_perceptron.py",
        "return s <= limit * h.length2(i)",
        "return s <= limit * h.length2(i) ** 0.5",
        TRAJECTORIES,
    ),
    Mutation(
        "MPU: one update too few at once",
        "algorithms/online/mpu.py",
        "floor((self.b - s) / square) + 1.0, cap)",
        "floor((self.b - s) / square), cap)",
        TRAJECTORIES,
    ),
    Mutation(
        "MPU: margin parameter for another accuracy",
        "algorithms/online/mpu.py",
        "(2.0 + delta) / delta) + 1.0",
        "(2.0 - delta) / delta)",
        THEOREMS,
    ),
    Mutation(
        "dual coordinate descent: step up to twice the cap",
        "algorithms/online/dual_coordinate_descent.py",
        "(self.unit - s) / h.length2(i), 0.0), cap)",
        "(self.unit - s) / h.length2(i), 0.0), 2.0 * cap)",
        TRAJECTORIES,
    ),
    Mutation(
        "ALMA: projection although the weight lies in the ball",
        "algorithms/online/alma.py",
        "if h.norm2() > 1.0:",
        "if h.norm2() > 0.0:",
        TRAJECTORIES,
    ),
    Mutation(
        "ROMMA: score of the new weight without the shrinkage",
        "algorithms/online/romma.py",
        "h.learn(i, k, (1.0 - k) * s)",
        "h.learn(i, k, s)",
        TRAJECTORIES,
    ),
    Mutation(
        "PUMMA: half of the pair left out",
        "algorithms/online/pumma.py",
        "h.add(j, 0.5 * k)",
        "h.add(j, k)",
        TRAJECTORIES,
    ),
    Mutation(
        "FMP: score with the bias in the norm's update",
        "algorithms/online/fmp.py",
        "k * h.score_without_bias(i, s)",
        "k * s",
        TRAJECTORIES,
    ),
    Mutation(
        "Pegasos: clock off by one",
        "algorithms/online/pegasos.py",
        "h.shrink(1.0 - 1.0 / h.time())",
        "h.shrink(1.0 - 1.0 / (h.time() + 1.0))",
        TRAJECTORIES,
    ),
    Mutation(
        "streams: a vote is kept for the shorter run",
        "engine/stream.py",
        "if lasted > self.votes[k]:",
        "if lasted < self.votes[k]:",
        "tests/estimators/test_online.py",
    ),
    Mutation(
        "packed rows take the cap of another row",
        "engine/state.py",
        "target.cap[k] = source.cap[i]",
        "target.cap[k] = source.cap[k]",
        TRAJECTORIES,
    ),
    Mutation(
        "line search in the p-norm: factor p for p - 1",
        "engine/vectors.py",
        "curvature = (p - 1.0) * factor * bend",
        "curvature = p * factor * bend",
        TRAJECTORIES,
    ),
    Mutation(
        "interior point: sign of the corrector",
        "algorithms/batch/interior_point.py",
        "- x * s - predictor.x * predictor.s",
        "- x * s + predictor.x * predictor.s",
        BATCH,
    ),
    Mutation(
        "cutting planes: the intercept's column left out of the bound",
        "algorithms/batch/cutting_plane.py",
        "problem.rho * float(alpha @ y))",
        "float(alpha @ y))",
        BATCH,
    ),
    Mutation(
        "decomposition: room of the wrong class",
        "algorithms/batch/decomposition.py",
        "room_j = alpha[j] if y[j] > 0.0",
        "room_j = alpha[j] if y[j] < 0.0",
        "tests/algorithms/test_decomposition.py",
    ),
    Mutation(
        "column generation: columns of one sign only",
        "algorithms/batch/generation.py",
        "_worst_outside(np.abs(v) - bound,",
        "_worst_outside(v - bound,",
        BATCH,
    ),
    # bounds and their proofs
    Mutation(
        "bounds: the imbalance of dual variables is not counted",
        "certificates/bounds.py",
        "rounding += sums.error + sums.imbalance + 4.0",
        "rounding += sums.error + 4.0",
        CERTIFICATES,
    ),
    Mutation(
        "bounds: upper bound of the hard margin not rounded outwards",
        "certificates/bounds.py",
        "upper = sums.length.high / total * (1.0 + 4.0 * EPS)",
        "upper = sums.length.high / total",
        CERTIFICATES,
    ),
    Mutation(
        "bounds: flipped sign of the last rounding",
        "certificates/bounds.py",
        "lower -= 4.0 * EPS * abs(lower)",
        "lower += 4.0 * EPS * abs(lower)",
        CERTIFICATES,
    ),
    Mutation(
        "bounds: rounding errors of margins dropped",
        "certificates/bounds.py",
        "least = margins - errors",
        "least = margins",
        CERTIFICATES,
    ),
    Mutation(
        "products of rows that underflow count as exact",
        "certificates/rows.py",
        "underflow = 8.0 * (count + 1.0)",
        "underflow = 0.0 * (count + 1.0)",
        CERTIFICATES,
    ),
    Mutation(
        "one-pass certificate: dual variables are not balanced",
        "certificates/one_pass.py",
        "if abs(left) > NEGLIGIBLE_IMBALANCE * side:",
        "if abs(left) > side:",
        CERTIFICATES,
    ),
    Mutation(
        "kernel certificate: error of scores dropped",
        "certificates/gram.py",
        "score_error += 1.01 * lengths * w_error",
        "score_error += 0.0 * lengths * w_error",
        CERTIFICATES,
    ),
    Mutation(
        "verify: a lower bound may be 0.1 % too large",
        "certificates/verification.py",
        "found.lower >= claim.lower - found.below",
        "found.lower >= claim.lower * 0.999",
        CERTIFICATES,
    ),
    Mutation(
        "verify: negative dual variables pass",
        "certificates/verification.py",
        "require(np.all(alpha >= 0.0)",
        "require(np.all(alpha >= -1.0)",
        CERTIFICATES,
    ),
    Mutation(
        "fingerprint of the data ignores the rows",
        "certificates/sample.py",
        "return 0.5 + hashes * 2.0**-21",
        "return 0.5 + hashes * 0.0",
        CERTIFICATES,
    ),
    Mutation(
        "length of a separator without its rounding margin",
        "certificates/separators.py",
        "length *= 1.0 + powers_error(q, len(w)) + 1e-12 * (len(w) + 4.0)",
        "length *= 1.0 - 1e-15",
        "tests/separability/test_separation.py",
    ),
    Mutation(
        "proof of inseparability need not balance the classes",
        "certificates/verdicts.py",
        "balanced = not self.bias or sum(signed) == 0",
        "balanced = True",
        "tests/separability/test_separation.py",
    ),
    Mutation(
        "long sums leave out their last part",
        "numerics/sums.py",
        "range(TERMS, w.size, TERMS)",
        "range(TERMS, w.size - TERMS, TERMS)",
        "tests/numerics",
    ),
    Mutation(
        "norms: squares that underflow are summed",
        "numerics/norms.py",
        "if MIN_SQUARES < square < np.inf:",
        "if square < np.inf:",
        "tests/numerics",
    ),
    Mutation(
        "smoothed Perceptron: weight of the steps off by one",
        "separability/smoothed.py",
        "theta = 2.0 / (k + 3)",
        "theta = 2.0 / (k + 2)",
        "tests/separability/test_smoothed.py",
    ),
    # files, commands, estimators
    Mutation(
        "compiled code: cache key without the digests of its files",
        "engine/jit.py",
        "*map(_digest, sorted(files)))",
        "len(files))",
        "tests/engine/test_jit.py",
    ),
    Mutation(
        "model files: contents are not part of the digest",
        "io/sealed_file.py",
        "    digest.update(view[seal + 64 :])\n",
        "",
        "tests/io/test_persistence.py",
    ),
    Mutation(
        "svmlight streams drop the last, unfinished line of a block",
        "io/readers/svmlight.py",
        "            rest = text[cut:]",
        '            rest = b""',
        "tests/cli/test_cli.py",
    ),
    Mutation(
        "svmlight: indices always count from 1",
        "io/readers/svmlight.py",
        "first = 0 if X.nnz and X.indices.min() == 0 else 1",
        "first = 1",
        "tests/io/test_readers.py",
    ),
    Mutation(
        "exit code 0 for a fit above its tolerance",
        "cli/fit.py",
        "code = 0 if model.status_ is Status.CERTIFIED else STOPPED",
        "code = 0",
        "tests/cli/test_cli.py",
    ),
    Mutation(
        "class weights go to the other classes",
        "estimators/validation.py",
        "weights[y == label] *= factor",
        "weights[y != label] *= factor",
        "tests/estimators/test_estimator_parameters.py",
    ),
    Mutation(
        "certified radius without the rounding errors of scores",
        "estimators/prediction.py",
        " - noise[rows, k] - noise[rows, j]",
        "",
        "tests/estimators/test_robustness.py",
    ),
    Mutation(
        "one against one: votes of a pair for the wrong class",
        "problem/multiclass.py",
        "sums[:, j] -= scores[:, k]",
        "sums[:, j] += scores[:, k]",
        "tests/estimators/test_kernel_estimator.py",
    ),
]
