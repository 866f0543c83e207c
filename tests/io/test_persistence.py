"""Model files: round trips are exact, and altered or foreign files are refused."""

from __future__ import annotations

import dataclasses
import errno
import os
import stat
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from sklearn.exceptions import NotFittedError

from maxmargin import MPU, KernelMaxMarginClassifier, MaxMarginClassifier, Perceptron, verify
from maxmargin.algorithms import Decomposition
from maxmargin.io.model_file import load, save
from maxmargin.io.sealed_file import FORMAT, ModelFileError, pack, unpack
from maxmargin.numerics.files import check_place, written_whole

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=40) > 0.0, 1, -1)
THREE_CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])


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


def assert_equal_certificates(one, two):
    assert one.problem == two.problem
    assert (one.lower, one.upper, one.fingerprint) == (two.lower, two.upper, two.fingerprint)
    assert np.array_equal(one.support, two.support)
    assert np.array_equal(one.dual, two.dual)


def check_round_trip(model, path, y):
    """Save, load and compare; check that the certificate of the copy holds for the data."""
    save(model, path)
    copy = load(path)
    parameters, copied = model.get_params(deep=False), copy.get_params(deep=False)
    parameters.update(callback=None)
    assert copied == parameters
    assert {name: type(value) for name, value in copied.items()} == {
        name: type(value) for name, value in parameters.items()
    }
    for name in ("coef_", "intercept_", "classes_", "class_weight_"):
        value, copied_value = getattr(model, name), getattr(copy, name)
        assert value.dtype == copied_value.dtype
        assert np.array_equal(value, copied_value)
        assert copied_value.flags.writeable
    assert (copy.n_features_in_, copy.n_iter_) == (model.n_features_in_, model.n_iter_)
    assert copy.status_ is model.status_
    assert copy.history_ == model.history_
    assert np.array_equal(copy.decision_function(X), model.decision_function(X))
    assert np.array_equal(copy.predict(X), model.predict(X))
    now, then = verify(copy, X, y), verify(model, X, y)
    assert str(now) == str(then)
    if hasattr(copy.certificate_, "parts"):
        assert copy.certificate_.classes == model.certificate_.classes
        for one, two in zip(copy.certificate_, model.certificate_, strict=True):
            assert_equal_certificates(one, two)
    else:
        assert_equal_certificates(copy.certificate_, model.certificate_)
    return copy


class TestRoundTrip:
    def test_default_model_survives_a_round_trip(self, model, path):
        check_round_trip(model, path, Y)

    def test_every_save_writes_the_same_bytes(self, model, path):
        save(model, path)
        first = path.read_bytes()
        save(load(path), path)
        assert path.read_bytes() == first

    def test_hard_margin_model_survives_a_round_trip(self, path):
        y = np.where(X[:, 0] > 0.0, 1, -1)
        copy = check_round_trip(MaxMarginClassifier(C=np.inf, random_state=3).fit(X, y), path, y)
        assert np.isinf(copy.C)
        assert copy.certificate_.problem.hard

    def test_infinite_bounds_survive_a_round_trip(self, path):
        model = MaxMarginClassifier(C=np.inf, max_iter=1, algorithm=Perceptron()).fit(np.ones((2, 1)), [0, 1])
        certificate = dataclasses.replace(model.certificate_, lower=-np.inf)
        report = dataclasses.replace(model.history_[0], lower=-np.inf, gap=np.inf)
        model.certificate_, model.history_ = certificate, [report]
        save(model, path)
        assert load(path).certificate_.lower == -np.inf
        assert load(path).history_ == [report]

    @pytest.mark.parametrize(
        "names",
        [
            np.array([3, 5, 9]),
            np.array([-1, 0, 2], np.float32),
            np.array(["red", "green", "blå"]),
            np.array(["inf", "nan", "1"], dtype=object),
        ],
    )
    def test_classes_of_any_type_survive_a_round_trip(self, path, names):
        y = names[THREE_CLASSES]
        check_round_trip(MaxMarginClassifier(max_iter=3, random_state=0).fit(X, y), path, y)

    def test_boolean_classes_survive_a_round_trip(self, path):
        check_round_trip(MaxMarginClassifier(random_state=0).fit(X, Y > 0), path, Y > 0)

    @pytest.mark.parametrize(
        ("y", "weights"),
        [
            (Y, {1: 2.0, -1: np.float64(0.5)}),
            (Y.astype(float), {1.0: 3}),
            (np.where(Y > 0, "inf", "nan"), {"inf": 2.0}),
            (Y > 0, {True: 2.0}),
            (Y, "balanced"),
        ],
    )
    def test_class_weights_keep_values_and_types(self, path, y, weights):
        model = MaxMarginClassifier(class_weight=weights, random_state=0).fit(X, y)
        save(model, path)
        copy = load(path)
        assert copy.class_weight == weights
        if isinstance(weights, dict):
            assert [type(key) for key in copy.class_weight] == [type(key) for key in weights]
        assert verify(copy, X, y).gap <= 1e-3

    @pytest.mark.parametrize(
        "algorithm", ["mpu", MPU(delta=1e-3), MPU(c_bar=float("inf")), Perceptron(b=2.0)]
    )
    def test_algorithm_survives_a_round_trip(self, path, algorithm):
        model = MaxMarginClassifier(algorithm=algorithm, random_state=0, max_iter=5).fit(X, Y)
        assert check_round_trip(model, path, Y).algorithm == algorithm

    def test_parameters_are_stored_except_callback_and_random_state(self, path):
        model = MaxMarginClassifier(
            C=np.float64(2.0),
            loss="hinge",
            tol=1e-2,
            intercept="augmented",
            intercept_scaling=3.0,
            max_iter=np.int64(50),
            max_time=60.0,
            random_state=np.random.RandomState(0),
            callback=lambda report: False,
        ).fit(X, Y)
        save(model, path)
        copy = load(path)
        assert copy.callback is None
        assert copy.random_state is None
        assert (copy.C, copy.max_iter, copy.max_time, copy.intercept_scaling) == (2.0, 50, 60.0, 3.0)

    def test_feature_names_are_stored(self, path):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, columns=["a", "b", "ç"])
        model = MaxMarginClassifier(random_state=0).fit(frame, Y)
        save(model, path)
        copy = load(path)
        assert copy.feature_names_in_.tolist() == ["a", "b", "ç"]
        assert copy.feature_names_in_.dtype == object
        assert np.array_equal(copy.predict(frame), model.predict(frame))

    def test_loaded_model_supports_warm_starts(self, model, saved):
        copy = load(saved).set_params(warm_start=True).fit(X, Y)
        assert copy.certificate_.gap <= 1e-3

    def test_source_of_the_data_is_stored(self, model, path):
        model.source_ = {"first_index": 0}
        try:
            save(model, path)
        finally:
            del model.source_
        assert load(path).source_ == {"first_index": 0}

    def test_file_is_a_safetensors_file(self, saved, model):
        assert np.array_equal(load_arrays(saved.read_bytes())["coef"], model.coef_)


class TestUnsupportedModels:
    def test_other_objects_are_refused(self, path):
        with pytest.raises(ModelFileError, match=r"save writes models of .*Classifier; got int"):
            save(3, path)

    def test_unfitted_models_are_refused(self, path):
        with pytest.raises(NotFittedError):
            save(MaxMarginClassifier(), path)
        assert not path.exists()

    def test_unregistered_algorithms_are_refused(self, model, path):
        @dataclasses.dataclass(frozen=True)
        class CustomMPU(MPU):
            pass

        custom = load_copy(model, path).set_params(algorithm=CustomMPU())
        with pytest.raises(ModelFileError, match=r'cannot name the algorithm CustomMPU.*algorithm="auto"'):
            save(custom, path)

    def test_parameters_of_other_types_are_refused(self, model, path):
        unsupported = load_copy(model, path).set_params(max_time=object())
        with pytest.raises(ModelFileError, match="a model file can hold numbers and strings"):
            save(unsupported, path)


def load_copy(model, path):
    save(model, path)
    return load(path)


class TestDamage:
    def test_every_altered_byte_is_detected(self, saved):
        content = saved.read_bytes()
        for k in range(len(content)):
            altered = bytearray(content)
            altered[k] ^= 0x29  # turns a space into a tab, which the format of the header allows
            saved.write_bytes(altered)
            with pytest.raises(ModelFileError) as caught:
                load(saved)
            assert str(caught.value).startswith(f"{saved}: ")

    def test_altered_number_breaks_the_seal(self, saved):
        content = bytearray(saved.read_bytes())
        content[-3] ^= 1
        saved.write_bytes(content)
        with pytest.raises(
            ModelFileError, match="was altered after it was saved; its checksum does not match"
        ):
            load(saved)

    def test_appended_byte_is_detected(self, saved):
        saved.write_bytes(saved.read_bytes() + b"\0")
        with pytest.raises(ModelFileError, match="was altered after it was saved"):
            load(saved)

    def test_truncation_is_detected(self, saved):
        content = saved.read_bytes()
        for k in range(0, len(content), 7):
            saved.write_bytes(content[:k])
            with pytest.raises(ModelFileError) as caught:
                load(saved)
            message = str(caught.value).removeprefix(f"{saved}: ")
            assert message.startswith(
                "the file is cut short" if k > 40 else ("the file is empty", "this is not a model")
            )

    @pytest.mark.parametrize("content", [b"\x80\x04N.", b"hello", b"1 1:1\n" * 50, b"\xff" * 100])
    def test_files_of_other_formats_are_refused(self, path, content):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="this is not a model file of maxmargin"):
            load(path)

    def test_deeply_nested_header_is_refused(self, path):
        header = b'{"__metadata__":{"maxmargin":"' + b"x" * 8 + b'"},"a":' + b"[" * 100_000
        path.write_bytes(len(header).to_bytes(8, "little") + header)
        with pytest.raises(ModelFileError, match="its header is damaged"):
            load(path)

    def test_safetensors_files_of_other_programs_are_refused(self, path):
        path.write_bytes(save_arrays({"coef": X}, {"made by": "somebody else"}))
        with pytest.raises(ModelFileError, match="this is not a model file of maxmargin"):
            load(path)

    def test_newer_format_is_refused(self, saved):
        content = saved.read_bytes()
        newer = rb"\"format\":%d" % (FORMAT + 1)
        saved.write_bytes(content.replace(rb"\"format\":%d" % FORMAT, newer, 1))
        with pytest.raises(ModelFileError, match=f"has format {FORMAT + 1}, above {FORMAT}; install"):
            load(saved)

    def test_missing_file_raises_file_not_found(self, path):
        with pytest.raises(FileNotFoundError):
            load(path)

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
    def test_sealed_files_with_invalid_records_are_refused(self, model, path, change):
        save(model, path)
        record, arrays = unpack(path, path.read_bytes())
        path.write_bytes(pack(arrays, record))
        load(path)
        change(record)
        path.write_bytes(pack(arrays, record))
        with pytest.raises(
            ModelFileError, match=r"this is not a complete model|models of class 'Popen' are not known"
        ):
            load(path)


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

    def test_interrupted_write_keeps_the_old_file(self, path):
        path.write_bytes(b"old")

        def write():
            with written_whole(path) as file:
                file.write(b"ne")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write()
        assert path.read_bytes() == b"old"
        assert list(path.parent.iterdir()) == [path]

    def test_full_disk_error_names_the_file(self, path):
        def write(target):
            with written_whole(target):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        for target in (path, os.devnull):
            with pytest.raises(OSError, match="No space left") as caught:
                write(target)
            assert caught.value.filename == str(target)
        assert not list(path.parent.iterdir())

    @pytest.mark.skipif(sys.platform == "win32", reason="no such permissions on Windows")
    def test_writing_keeps_permissions_and_links(self, path, tmp_path):
        path.write_bytes(b"old")
        path.chmod(0o600)
        link = tmp_path / "link"
        link.symlink_to(path)
        with written_whole(link) as file:
            file.write(b"new")
        assert link.is_symlink()
        assert path.read_bytes() == b"new"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
    def test_devices_are_not_replaced(self):
        with written_whole(os.devnull) as file:
            file.write(b"gone")
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)

    def test_invalid_output_paths_are_refused(self, tmp_path):
        with pytest.raises(IsADirectoryError, match="this is a folder; name a file in it"):
            check_place(tmp_path)
        with pytest.raises(FileNotFoundError, match="there is no such folder"):
            check_place(tmp_path / "nowhere" / "file")


class TestKernelMachines:
    """Model files of kernel classifiers."""

    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"kernel": "linear", "loss": "squared_hinge"},
            {"kernel": "poly", "degree": 2, "coef0": 1.0, "algorithm": Decomposition()},
            {"kernel": "laplacian", "gamma": 0.3},
            {"multi_class": "ovo", "C": float("inf"), "gamma": 30.0},
            {"class_weight": {0: 2.0}, "multi_class": "ovo", "decision_function_shape": "ovo"},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("y", [Y, THREE_CLASSES], ids=["two", "three"])
    @pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
    def test_kernel_model_survives_a_round_trip(self, parameters, y, store, path):
        if "class_weight" in parameters and y is Y:
            parameters = {**parameters, "class_weight": "balanced"}
        if parameters.get("kernel") == "laplacian" and store is sp.csr_matrix:
            pytest.skip("scikit-learn has this kernel for dense rows")
        model = KernelMaxMarginClassifier(**parameters).fit(store(X), y)
        save(model, path)
        copy = load(path)
        assert {**copy.get_params(), "algorithm": None} == {**model.get_params(), "algorithm": None}
        for name in ("dual_coef_", "intercept_", "support_", "n_support_", "classes_", "class_weight_"):
            np.testing.assert_array_equal(getattr(copy, name), getattr(model, name))
            assert getattr(copy, name).dtype == getattr(model, name).dtype
        assert copy.gamma_ == model.gamma_
        assert copy.shape_fit_ == model.shape_fit_
        assert copy.history_ == model.history_
        assert copy.status_ is model.status_
        np.testing.assert_array_equal(copy.decision_function(store(X)), model.decision_function(store(X)))
        assert str(verify(copy, store(X), y)) == str(verify(model, store(X), y))

    @pytest.mark.parametrize(("fitted", "later"), [("ovr", "ovo"), ("ovo", "ovr")])
    def test_file_keeps_the_fitted_scheme_after_set_params(self, fitted, later, path):
        """Parameters that are set after the fit do not change the stored model."""
        model = KernelMaxMarginClassifier(multi_class=fitted).fit(X, THREE_CLASSES)
        scores, proved = model.decision_function(X), str(verify(model, X, THREE_CLASSES))
        model.set_params(multi_class=later, kernel="linear")
        save(model, path)
        copy = load(path)
        assert copy.multi_class == later
        assert copy.multi_class_ == fitted
        np.testing.assert_array_equal(copy.decision_function(X), scores)
        assert str(verify(copy, X, THREE_CLASSES)) == proved

    def test_files_without_the_fitted_scheme_are_read(self, path):
        """Older files store the scheme among the parameters only."""
        model = KernelMaxMarginClassifier(multi_class="ovo").fit(X, THREE_CLASSES)
        save(model, path)
        record, arrays = unpack(path, path.read_bytes())
        del record["fitted"]["multi_class"]
        path.write_bytes(pack(arrays, record))
        assert load(path).multi_class_ == "ovo"

    def test_verdict_keeps_its_kernel(self, path):
        rows, labels = np.array([[0.0], [0.0], [1.0]]), np.array([0, 1, 1])
        model = KernelMaxMarginClassifier(kernel="poly", degree=2, C=np.inf).fit(rows, labels)
        save(model, path)
        assert load(path).verdict_.kernel == model.verdict_.kernel == model.kernel_

    def test_precomputed_kernel_models_are_saved(self, path):
        model = KernelMaxMarginClassifier(kernel="precomputed").fit(X @ X.T, Y)
        save(model, path)
        copy = load(path)
        np.testing.assert_array_equal(copy.predict(X @ X.T), model.predict(X @ X.T))
        verify(copy, X @ X.T, Y)
        model.fit(X @ X.T * 1e200, Y)  # gamma is infinite, and not used
        save(model, path)
        assert load(path).gamma_ == model.gamma_ == np.inf

    def test_callable_kernels_are_refused(self, path):
        model = KernelMaxMarginClassifier(kernel=lambda A, B: A @ B.T).fit(X, Y)
        with pytest.raises(ModelFileError, match="cannot hold code"):
            save(model, path)
        assert not path.exists()
