"""Model files: copies equal the model, damaged files are refused, and writing is atomic."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from safetensors.numpy import save as save_arrays
from sklearn.base import clone

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, ModelFileError, load, save, verify
from maxmargin.algorithms import MPU, SmoothedPrimalDual

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=40) > 0.0, 1, -1)
THREE_CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])
WORDS = np.array(["red", "green", "blå"])[THREE_CLASSES]
NEW = np.vstack([RNG.normal(0.0, 3.0, (100, 3)), np.zeros((1, 3))])
FITTED = ("coef_", "dual_coef_", "intercept_", "support_", "n_support_", "classes_", "class_weight_")
FIELDS = ("status_", "history_", "n_iter_", "n_features_in_", "gamma_", "shape_fit_", "multi_class_")
INF = float("inf")
OVO = {"multi_class": "ovo"}


def linear(**parameters):
    return MaxMarginClassifier(random_state=0, **parameters)


def gram(rows):
    return rows @ X.T


# model, labels, storage of the rows
MODELS = [
    (linear(class_weight={1: 2.0, -1: 0.5}), Y, np.asarray),
    (linear(class_weight={1.0: 3}, fit_intercept=False), Y.astype(float), np.asarray),
    (linear(class_weight={"inf": 2.0}), np.where(Y > 0, "inf", "nan").astype(object), np.asarray),
    (linear(class_weight={True: 2.0}), Y > 0, np.asarray),
    (linear(C=INF), np.where(X[:, 0] > 0.0, 1, -1), np.asarray),
    (linear(algorithm="mpu", max_iter=5, class_weight="balanced"), WORDS, np.asarray),
    (linear(algorithm=MPU(c_bar=INF), max_iter=5), THREE_CLASSES, np.asarray),
    (
        linear(C=INF, algorithm=SmoothedPrimalDual(q=np.random.default_rng(1).random(40))),
        np.where(X[:, 0] > 0.0, 1, -1),
        np.asarray,
    ),
    (linear(fit_intercept=False, loss="hinge"), THREE_CLASSES.astype(np.float32), np.asarray),
    (
        linear(loss="hinge", intercept_scaling=3.0, max_time=60.0, tol=1e-2),
        THREE_CLASSES,
        np.asarray,
    ),
    (KernelMaxMarginClassifier(), Y, sp.csr_matrix),
    (
        KernelMaxMarginClassifier(kernel="linear", loss="squared_hinge"),
        THREE_CLASSES,
        np.asarray,
    ),
    (KernelMaxMarginClassifier(kernel="linear", **OVO), Y, np.asarray),
    (KernelMaxMarginClassifier(kernel="poly", degree=2, coef0=1.0, **OVO), Y, np.asarray),
    (KernelMaxMarginClassifier(kernel="laplacian", gamma=0.3, class_weight="balanced"), Y, np.asarray),
    (KernelMaxMarginClassifier(C=INF, gamma=30.0, **OVO), THREE_CLASSES, sp.csr_matrix),
    (KernelMaxMarginClassifier(class_weight={0: 2.0}, **OVO), THREE_CLASSES, np.asarray),
    (KernelMaxMarginClassifier(kernel="precomputed"), Y, gram),
]


@pytest.fixture(scope="module")
def model():
    return linear().fit(X, Y)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def saved(model, path):
    save(model, path)
    return path


def load_copy(model, path):
    save(model, path)
    return load(path)


def check_round_trip(model, path, rows, y):
    """Save, load and compare bit by bit; the certificate of the copy must hold for the data."""
    copy = load_copy(model, path)
    for names, one, two in (
        (model.get_params(deep=False), model.get_params(deep=False), copy.get_params(deep=False)),
        (FIELDS, vars(model), vars(copy)),
    ):
        for name in set(names) - {"callback"}:
            assert two.get(name) == one.get(name), name
            assert type(two.get(name)) is type(one.get(name)), name
    if isinstance(model.class_weight, dict):
        assert [type(key) for key in copy.class_weight] == [type(key) for key in model.class_weight]
    for name in FITTED:
        value, copied = getattr(model, name, None), getattr(copy, name, None)
        if value is not None:
            assert value.dtype == copied.dtype, name
            assert np.array_equal(value, copied), name
            assert copied.flags.writeable == value.flags.writeable, name
    assert str(verify(copy, rows, y)) == str(verify(model, rows, y))
    for one, two in zip(copy.certificate_.certificates, model.certificate_.certificates, strict=True):
        for name in ("problem", "lower", "upper", "fingerprint", "support", "dual"):
            assert np.array_equal(getattr(one, name), getattr(two, name)), name
    content = path.read_bytes()
    save(copy, path)
    assert path.read_bytes() == content
    return copy


class TestRoundTrip:
    @pytest.mark.parametrize(("model", "y", "store"), MODELS, ids=[str(one[0]) for one in MODELS])
    def test_copies_equal_the_model(self, model, y, store, path):
        model = clone(model).fit(store(X), y)
        copy, new = check_round_trip(model, path, store(X), y), store(NEW)
        assert np.array_equal(copy.predict(new), model.predict(new))
        assert np.array_equal(copy.decision_function(new), model.decision_function(new))

    def test_entries_that_files_cannot_hold_are_left_out_and_others_survive(self, path):
        frame = pd.DataFrame(X, columns=["a", "b", "ç"])
        options = {"random_state": np.random.RandomState(0), "callback": lambda report: False}
        fitted = MaxMarginClassifier(C=np.float64(2.0), max_iter=np.int64(50), **options).fit(frame, Y)
        fitted.source_ = {"first_index": 0}
        copy = load_copy(fitted, path)
        assert (copy.callback, copy.random_state, copy.C, copy.max_iter) == (None, None, 2.0, 50)
        assert copy.source_ == {"first_index": 0}
        assert (copy.feature_names_in_.tolist(), copy.feature_names_in_.dtype) == (["a", "b", "ç"], object)
        assert copy.set_params(warm_start=True).fit(frame, Y).certificate_.gap <= 1e-3
        copy.certificate_ = dataclasses.replace(copy.certificate_, lower=-np.inf)
        copy.history_ = [dataclasses.replace(copy.history_[0], lower=-np.inf, gap=np.inf)]
        again = load_copy(copy, path)
        assert (again.certificate_.lower, again.history_) == (-np.inf, copy.history_)

    def test_fitted_scheme_does_not_change_with_set_params(self, path):
        machine = KernelMaxMarginClassifier(multi_class="ovr").fit(X, THREE_CLASSES)
        scores = machine.decision_function(X)
        copy = load_copy(machine.set_params(multi_class="ovo", kernel="linear"), path)
        assert (copy.multi_class, copy.multi_class_) == ("ovo", "ovr")
        assert np.array_equal(copy.decision_function(X), scores)
        verify(copy, X, THREE_CLASSES)

    def test_verdicts_keep_their_kernel(self, path):
        rows, labels = np.array([[0.0], [0.0], [1.0]]), np.array([0, 1, 1])
        machine = KernelMaxMarginClassifier(kernel="poly", degree=2, C=np.inf).fit(rows, labels)
        assert load_copy(machine, path).verdict_.kernel == machine.verdict_.kernel == machine.kernel_


def parts(path):
    """Return the record of a model file and its arrays."""
    with safe_open(path, framework="np") as file:
        return json.loads(file.metadata()["maxmargin"]), {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118


def seal(path, record, arrays):
    """Write a file with a valid checksum, as docs/reference/model_file.md describes it."""
    digest = hashlib.sha256(json.dumps(record["model"], separators=(",", ":")).encode())
    for name in sorted(arrays):
        digest.update(
            f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode() + arrays[name].tobytes()
        )
    record["sha256"] = digest.hexdigest()
    path.write_bytes(save_arrays(arrays, {"maxmargin": json.dumps(record)}))


class TestDamage:
    def test_altered_numbers_and_truncations_are_detected(self, saved):
        content = saved.read_bytes()
        header = 8 + int.from_bytes(content[:8], "little")
        damaged = [content[:k] for k in [*range(0, len(content), 97), len(content) - 1]]
        # within the header, the padding of JSON may change without a meaning
        for k in [*range(header, len(content), 23), content.index(b"lower"), content.index(b"sha256") + 12]:
            damaged.append(content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :])
        for other in (content + b"\0", b"\x80\x04N.", b"1 1:1\n" * 50, save_arrays({"a": X}, {"by": "me"})):
            damaged.append(other)
        for other in damaged:
            saved.write_bytes(other)
            with pytest.raises(ModelFileError, match=f"^{saved}: "):
                load(saved)

    @pytest.mark.parametrize(
        "change",
        [
            lambda record: record.update(format=2),
            lambda record: record["model"].pop("fitted"),
            lambda record: record["model"]["fitted"]["certificates"][0].update(lower="much"),
            lambda record: record["model"]["parameters"].update(price=3),
            lambda record: record["model"]["parameters"].update(
                algorithm={"name": "os.system", "fields": {}}
            ),
            lambda record: record["model"]["fitted"].update(status="FINE"),
            lambda record: record["model"]["fitted"].update(n_features_in=4),
            lambda record: record["model"].update({"class": "Popen"}),
        ],
    )
    def test_sealed_files_with_invalid_records_are_refused(self, saved, change):
        record, arrays = parts(saved)
        seal(saved, record, arrays)
        load(saved)
        change(record)
        seal(saved, record, arrays)
        with pytest.raises(ModelFileError, match=r"not a complete model|newer"):
            load(saved)

    @pytest.mark.parametrize(("name", "value"), [("indices", 3), ("indices", -1), ("indptr", 2**20)])
    def test_sparse_vectors_with_entries_out_of_range_are_refused(self, path, name, value):
        """SciPy would read and write memory beyond the arrays."""
        save(KernelMaxMarginClassifier(random_state=0).fit(sp.csr_matrix(X), Y), path)
        record, arrays = parts(path)
        arrays[f"vectors.{name}"][1] = value
        seal(path, record, arrays)
        with pytest.raises(ModelFileError, match="this is not a complete model"):
            load(path)

    def test_proofs_about_other_rows_or_of_no_numbers_are_refused(self, path):
        model = linear(C=INF).fit(X, Y)
        proof = model.verdict_
        wrong = [{"support": np.append(proof.support[1:], row)} for row in (-1, 40)]
        for change in [*wrong, {"weights": ("1/0", *proof.weights[1:])}]:
            model.verdict_ = dataclasses.replace(proof, **change)
            save(model, path)
            with pytest.raises(ModelFileError, match=r"rows that the data do not have|not a complete model"):
                load(path)


class TestAtomicWriting:
    @pytest.mark.parametrize(
        ("call", "error"), [("fsync", OSError), ("replace", OSError), ("replace", KeyboardInterrupt)]
    )
    def test_failed_write_keeps_the_old_file_and_leaves_no_other(
        self, model, saved, call, error, monkeypatch
    ):
        before = saved.read_bytes()

        def fail(*args):
            raise error(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, call, fail)
        with pytest.raises(error):
            save(model, saved)
        assert saved.read_bytes() == before
        assert list(saved.parent.iterdir()) == [saved]

    @pytest.mark.slow
    def test_the_next_writer_deletes_what_killed_ones_left(self, model, path, tmp_path):
        script = (
            "import os, sys; from maxmargin import MaxMarginClassifier, save; os.fsync = lambda _: os._exit(9)\n"
            "save(MaxMarginClassifier().fit([[0.0], [1.0]], [0, 1]), sys.argv[1])"
        )
        assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == 9
        (stray,) = tmp_path.iterdir()
        (tmp_path / stray.name[1:]).touch()  # not hidden: not ours
        save(model, path)
        assert {one.name for one in tmp_path.iterdir()} == {path.name, stray.name[1:]}

    @pytest.mark.parametrize("letter", ["a", "\u00e9", "\U0001f600"])
    def test_the_longest_names_are_written(self, model, tmp_path, letter):
        path = tmp_path / (letter * (255 // len(letter.encode())))
        try:
            path.write_bytes(b"old")
        except OSError:
            pytest.skip("the file system has no names of 255 bytes")
        save(model, path)
        assert load(path).classes_.tolist() == [-1, 1]
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.skipif(sys.platform == "win32", reason="no such permissions or devices on Windows")
    def test_writing_keeps_permissions_links_and_devices(self, model, path, tmp_path):
        path.write_bytes(b"old")
        path.chmod(0o600)
        link = tmp_path / "link"
        link.symlink_to(path)
        for target in (link, os.devnull):
            save(model, target)
        assert link.is_symlink()
        assert load(path).classes_.tolist() == [-1, 1]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
