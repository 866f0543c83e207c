"""Model files: round trips are exact, and altered or foreign files are refused."""

from __future__ import annotations

import dataclasses
import errno
import os
import stat
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from safetensors.numpy import save as save_arrays
from sklearn.exceptions import NotFittedError

from maxmargin import MPU, KernelMaxMarginClassifier, MaxMarginClassifier, verify
from maxmargin.io.model_file import load, save
from maxmargin.io.sealed_file import FORMAT, ModelFileError, pack, unpack
from maxmargin.numerics.files import check_place, written_whole

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=40) > 0.0, 1, -1)
THREE_CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])
FITTED = ("coef_", "dual_coef_", "intercept_", "support_", "n_support_", "classes_", "class_weight_")
FIELDS = ("status_", "history_", "n_iter_", "n_features_in_", "gamma_", "shape_fit_", "multi_class_")


@pytest.fixture(scope="module")
def model():
    return MaxMarginClassifier(random_state=0).fit(X, Y)


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


def check_round_trip(model, path, X, y):
    """Save, load and compare bit by bit; the certificate of the copy must hold for the data."""
    copy = load_copy(model, path)
    for names, one, two in (
        (model.get_params(deep=False), model.get_params(deep=False), copy.get_params(deep=False)),
        (FIELDS, vars(model), vars(copy)),
    ):
        for name in set(names) - {"callback"}:
            assert two.get(name) == one.get(name), name
            assert type(two.get(name)) is type(one.get(name)), name
    for name in FITTED:
        value, copied = getattr(model, name, None), getattr(copy, name, None)
        if value is not None:
            assert value.dtype == copied.dtype, name
            assert np.array_equal(value, copied), name
            assert copied.flags.writeable == value.flags.writeable, name
    assert np.array_equal(copy.decision_function(X), model.decision_function(X))
    assert np.array_equal(copy.predict(X), model.predict(X))
    assert str(verify(copy, X, y)) == str(verify(model, X, y))
    for one, two in zip(copy.certificate_.certificates, model.certificate_.certificates, strict=True):
        assert (one.problem, one.lower, one.upper, one.fingerprint) == (
            two.problem, two.lower, two.upper, two.fingerprint
        )  # fmt: skip
        assert np.array_equal(one.support, two.support)
        assert np.array_equal(one.dual, two.dual)
    content = path.read_bytes()
    save(copy, path)
    assert path.read_bytes() == content
    return copy


class TestRoundTrip:
    @pytest.mark.parametrize(
        "classes",
        [
            np.array([-1, 0, 2], np.float32),
            np.array(["red", "green", "blå"]),
            np.array(["inf", "nan", "1"], dtype=object),
            np.array([True, False, True]),
        ],
    )
    def test_classes_of_any_type_survive(self, path, classes):
        y = classes[THREE_CLASSES]
        check_round_trip(MaxMarginClassifier(max_iter=3, random_state=0).fit(X, y), path, X, y)

    @pytest.mark.parametrize(
        ("y", "weights"),
        [
            (Y, {1: 2.0, -1: 0.5}),
            (Y.astype(float), {1.0: 3}),
            (np.where(Y > 0, "inf", "nan"), {"inf": 2.0}),
            (Y > 0, {True: 2.0}),
            (Y, "balanced"),
        ],
    )
    def test_class_weights_keep_values_and_types(self, path, y, weights):
        fitted = MaxMarginClassifier(class_weight=weights, random_state=0).fit(X, y)
        copy = check_round_trip(fitted, path, X, y)
        if isinstance(weights, dict):
            assert [type(key) for key in copy.class_weight] == [type(key) for key in weights]

    @pytest.mark.parametrize(
        "parameters",
        [
            {"C": np.inf, "random_state": 3},
            {"algorithm": "mpu", "max_iter": 5, "random_state": 0},
            {"algorithm": MPU(c_bar=float("inf")), "max_iter": 5, "random_state": 0},
            {
                "loss": "hinge",
                "intercept": "augmented",
                "intercept_scaling": 3.0,
                "max_time": 60.0,
                "tol": 1e-2,
            },
        ],
        ids=str,
    )
    def test_parameters_survive(self, path, parameters):
        y = np.where(X[:, 0] > 0.0, 1, -1)
        check_round_trip(MaxMarginClassifier(**parameters).fit(X, y), path, X, y)

    def test_callbacks_and_generators_are_left_out_and_numpy_numbers_are_plain(self, path):
        options = {"random_state": np.random.RandomState(0), "callback": lambda report: False}
        fitted = MaxMarginClassifier(C=np.float64(2.0), max_iter=np.int64(50), **options).fit(X, Y)
        copy = load_copy(fitted, path)
        assert (copy.callback, copy.random_state, copy.C, copy.max_iter) == (None, None, 2.0, 50)

    def test_infinite_bounds_survive(self, model, path):
        fitted = load_copy(model, path)
        fitted.certificate_ = dataclasses.replace(fitted.certificate_, lower=-np.inf)
        fitted.history_ = [dataclasses.replace(fitted.history_[0], lower=-np.inf, gap=np.inf)]
        copy = load_copy(fitted, path)
        assert copy.certificate_.lower == -np.inf
        assert copy.history_ == fitted.history_

    def test_names_source_and_warm_starts_survive(self, path):
        frame = pd.DataFrame(X, columns=["a", "b", "ç"])
        fitted = MaxMarginClassifier(random_state=0).fit(frame, Y)
        fitted.source_ = {"first_index": 0}
        copy = load_copy(fitted, path)
        assert copy.source_ == {"first_index": 0}
        assert copy.feature_names_in_.tolist() == ["a", "b", "ç"]
        assert copy.feature_names_in_.dtype == object
        assert copy.set_params(warm_start=True).fit(frame, Y).certificate_.gap <= 1e-3

    @pytest.mark.parametrize(
        ("parameters", "y", "store"),
        [
            ({}, Y, sp.csr_matrix),
            ({"kernel": "linear", "loss": "squared_hinge"}, THREE_CLASSES, np.asarray),
            ({"kernel": "poly", "degree": 2, "coef0": 1.0}, Y, np.asarray),
            ({"kernel": "laplacian", "gamma": 0.3, "class_weight": "balanced"}, Y, np.asarray),
            ({"multi_class": "ovo", "C": float("inf"), "gamma": 30.0}, THREE_CLASSES, sp.csr_matrix),
            ({"multi_class": "ovo", "class_weight": {0: 2.0}}, THREE_CLASSES, np.asarray),
            ({"kernel": "precomputed"}, Y, lambda rows: rows @ rows.T),
        ],
    )
    def test_kernel_models_survive(self, parameters, y, store, path):
        rows = store(X)
        check_round_trip(KernelMaxMarginClassifier(**parameters).fit(rows, y), path, rows, y)

    def test_fitted_scheme_does_not_change_with_set_params(self, path):
        machine = KernelMaxMarginClassifier(multi_class="ovr").fit(X, THREE_CLASSES)
        scores = machine.decision_function(X)
        save(machine.set_params(multi_class="ovo", kernel="linear"), path)
        copy = load(path)
        assert (copy.multi_class, copy.multi_class_) == ("ovo", "ovr")
        assert np.array_equal(copy.decision_function(X), scores)
        verify(copy, X, THREE_CLASSES)

    def test_files_without_the_fitted_scheme_are_read(self, path):
        """Older files store the scheme among the parameters only."""
        save(KernelMaxMarginClassifier(multi_class="ovo").fit(X, THREE_CLASSES), path)
        record, arrays = unpack(path, path.read_bytes())
        del record["fitted"]["multi_class"]
        path.write_bytes(pack(arrays, record))
        assert load(path).multi_class_ == "ovo"

    def test_verdicts_keep_their_kernel_and_gamma_may_be_infinite(self, path):
        rows, labels = np.array([[0.0], [0.0], [1.0]]), np.array([0, 1, 1])
        machine = KernelMaxMarginClassifier(kernel="poly", degree=2, C=np.inf).fit(rows, labels)
        save(machine, path)
        assert load(path).verdict_.kernel == machine.verdict_.kernel == machine.kernel_
        save(KernelMaxMarginClassifier(kernel="precomputed").fit(X @ X.T * 1e200, Y), path)
        assert load(path).gamma_ == np.inf


class CustomMPU(MPU):
    """An algorithm that model files do not know."""


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda model: 3, "save writes models of .*Classifier; got int"),
        (lambda model: MaxMarginClassifier(), None),
        (
            lambda model: model.set_params(algorithm=CustomMPU()),
            'cannot name the algorithm.*algorithm="auto"',
        ),
        (lambda model: model.set_params(max_time=object()), "a model file can hold numbers and strings"),
        (lambda model: KernelMaxMarginClassifier(kernel=lambda A, B: A @ B.T).fit(X, Y), "cannot hold code"),
    ],
    ids=["int", "unfitted", "algorithm", "object", "code"],
)
def test_models_that_no_file_can_hold_are_refused(saved, tmp_path, change, expected):
    with pytest.raises(ModelFileError if expected else NotFittedError, match=expected):
        save(change(load(saved)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


class TestDamage:
    @pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 11])
    def test_every_altered_byte_is_detected(self, saved, step):
        content = saved.read_bytes()
        for k in [*range(0, len(content), step), len(content) - 1]:
            altered = bytearray(content)
            altered[k] ^= 0x29  # turns a space into a tab, which the format of the header allows
            saved.write_bytes(altered)
            with pytest.raises(ModelFileError) as caught:
                load(saved)
            assert str(caught.value).startswith(f"{saved}: ")
        assert "was altered after it was saved" in str(caught.value)

    def test_truncation_and_appended_bytes_are_detected(self, saved):
        content = saved.read_bytes()
        for k in [*range(0, len(content), 37), len(content) - 1]:
            saved.write_bytes(content[:k])
            expected = "the file is cut short" if k > 40 else "the file is empty|this is not a model"
            with pytest.raises(ModelFileError, match=expected):
                load(saved)
        saved.write_bytes(content + b"\0")
        with pytest.raises(ModelFileError, match="was altered after it was saved"):
            load(saved)

    @pytest.mark.parametrize(
        "content",
        [b"\x80\x04N.", b"hello", b"1 1:1\n" * 50, b"\xff" * 100, save_arrays({"coef": X}, {"by": "others"})],
    )
    def test_files_of_other_formats_are_refused(self, path, content):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="this is not a model file of maxmargin"):
            load(path)

    def test_newer_format_is_refused(self, saved):
        newer = rb"\"format\":%d" % (FORMAT + 1)
        saved.write_bytes(saved.read_bytes().replace(rb"\"format\":%d" % FORMAT, newer, 1))
        with pytest.raises(ModelFileError, match=f"has format {FORMAT + 1}, above {FORMAT}; install"):
            load(saved)

    @pytest.mark.parametrize(
        "change",
        [
            lambda record: record.pop("fitted"),
            lambda record: record["parameters"].pop("algorithm"),
            lambda record: record["parameters"].pop("C"),
            lambda record: record["fitted"]["certificates"][0].update(lower="much"),
            lambda record: record["parameters"].update(price=3),
            lambda record: record["parameters"].update(algorithm={"name": "os.system", "fields": {}}),
            lambda record: record["fitted"].update(status="FINE"),
            lambda record: record["fitted"].update(n_features_in=4),
            lambda record: record["fitted"]["certificates"].append({}),
            lambda record: record.update({"class": "Popen"}),
        ],
    )
    def test_sealed_files_with_invalid_records_are_refused(self, saved, change):
        record, arrays = unpack(saved, saved.read_bytes())
        change(record)
        saved.write_bytes(pack(arrays, record))
        with pytest.raises(ModelFileError, match=r"this is not a complete model|models of class 'Popen'"):
            load(saved)


class TestAtomicWriting:
    @pytest.mark.parametrize("call", ["fsync", "replace"])
    def test_failed_write_keeps_the_old_file_and_leaves_no_other(self, saved, call, monkeypatch):
        before = saved.read_bytes()

        def fail(*args):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, call, fail)
        with pytest.raises(OSError, match="No space left"):
            save(MaxMarginClassifier(C=0.5, random_state=0).fit(X, Y), saved)
        assert saved.read_bytes() == before
        assert [file.name for file in saved.parent.iterdir()] == [saved.name]

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))])
    def test_interrupted_write_keeps_the_old_file(self, path, error):
        def write():
            with written_whole(path) as file:
                file.write(b"ne")
                raise error

        path.write_bytes(b"old")
        with pytest.raises(type(error)):
            write()
        assert path.read_bytes() == b"old"
        assert list(path.parent.iterdir()) == [path]
        if isinstance(error, OSError):
            assert error.filename == str(path)

    @pytest.mark.skipif(sys.platform == "win32", reason="no such permissions or devices on Windows")
    def test_writing_keeps_permissions_links_and_devices(self, path, tmp_path):
        path.write_bytes(b"old")
        path.chmod(0o600)
        link = tmp_path / "link"
        link.symlink_to(path)
        for target in (link, os.devnull):
            with written_whole(target) as file:
                file.write(b"new")
        assert link.is_symlink()
        assert path.read_bytes() == b"new"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)

    def test_invalid_places_are_refused(self, tmp_path, path):
        with pytest.raises(IsADirectoryError, match="this is a folder; name a file in it"):
            check_place(tmp_path)
        with pytest.raises(FileNotFoundError, match="there is no such folder"):
            check_place(tmp_path / "nowhere" / "file")
        with pytest.raises(FileNotFoundError):
            load(path)
