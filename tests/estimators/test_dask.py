"""Fits, predictions and verification of Dask collections."""

import os
import pickle
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from clusters import assert_same_bounds, assert_same_fit, model, rows

from maxmargin import (
    CertificateError,
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    ReadingStoppedError,
    Status,
    load,
    save,
    separate,
    verify,
)

dask = pytest.importorskip("dask", reason="Dask is not installed: the extra maxmargin[dask]")
distributed = pytest.importorskip(
    "distributed", reason="distributed is not installed: the extra maxmargin[dask]"
)
pd = pytest.importorskip("pandas", reason="pandas is not installed: the extra maxmargin[dask]")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    with distributed.Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0", set_as_default=False
    ) as found:
        yield found


@pytest.fixture(params=["threads", "client"])
def scheduler(request):
    """Dask's threads, and a client whose workers are in this process."""
    if request.param == "threads":
        with dask.config.set(scheduler="threads"):
            yield request.param
    else:
        with request.getfixturevalue("client").as_current():
            yield request.param


def arrays(X, y, weights=None, size=300):
    """Return rows, labels and weights as Dask arrays with the same partitions; CSR rows as blocks of CSR matrices."""
    parts = [da.from_array(part, chunks=size) for part in (y, weights) if part is not None]
    if not sp.issparse(X):
        return da.from_array(X, chunks=(size, -1)), *parts
    blocks = [dask.delayed(X[k : k + size]) for k in range(0, X.shape[0], size)]
    meta = sp.csr_matrix((0, X.shape[1]))
    return da.concatenate(
        [da.from_delayed(block, (block.shape[0].compute(), X.shape[1]), meta=meta) for block in blocks]
    ), *parts


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_fit_of_arrays_is_the_fit_of_the_same_rows_in_memory(loss, storage, scheduler):
    X, y, weights = rows(classes=2 if loss == "hinge" else 3)
    # less than the rows need, and 50 rows a column: Newton's method is chosen for arrays as well
    X, parameters = storage(X), {"loss": loss, "class_weight": "balanced", "memory": "120kB"}
    one = model(**parameters).fit(*arrays(X, y, weights))
    assert_same_fit(one, model(**parameters).fit(X, y, weights))
    np.testing.assert_allclose(
        one.class_weight_, MaxMarginClassifier(**parameters).fit(X, y, weights).class_weight_
    )


def test_fit_of_a_frame_keeps_the_names_of_columns_and_labels(scheduler):
    X, y, _ = rows()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=np.array(["no", "yes"])[y])
    collection = dd.from_pandas(frame, npartitions=5)
    # partitions of unknown length, some of which are empty
    kept = collection[(collection["a"] > 0.0) & (collection.index > 500)]
    features = list("abcdef")
    found = model().fit(kept[features], kept["label"])
    same = kept.compute()
    assert_same_fit(found, model().fit(same[features].to_numpy(), same["label"].to_numpy(dtype=object)))
    assert found.feature_names_in_.tolist() == features
    labels, scores = found.predict(kept[features]), found.decision_function(kept[features])
    assert isinstance(labels, dd.Series)
    computed = labels.compute()
    assert computed.index.equals(same.index)
    assert computed.tolist() == found.predict(same[features]).tolist()
    np.testing.assert_allclose(scores.compute(), found.decision_function(same[features]))
    assert verify(found, kept[features], kept["label"]).gap <= 1e-5
    assert found.score(kept[features], kept["label"]) == found.score(same[features], same["label"])
    with pytest.raises(ValueError, match="feature names"):
        found.predict(kept[features[::-1]])


def test_scores_of_several_classes_are_a_frame_with_a_column_for_each():
    X, y, _ = rows(classes=3)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    found = MaxMarginClassifier().fit(frame, y)
    scores = found.decision_function(dd.from_pandas(frame, npartitions=2))
    assert scores.compute().columns.tolist() == found.classes_.tolist()
    np.testing.assert_allclose(scores.compute(), found.decision_function(frame))


def test_partitions_of_one_class_or_without_rows():
    X, y, _ = rows()
    order = np.argsort(y, kind="stable")
    X, y, sizes = X[order], y[order], (0, 700, 0, 0, 100, 1200, 0)
    found = model().fit(da.from_array(X, chunks=(sizes, (6,))), da.from_array(y, chunks=(sizes,)))
    assert_same_fit(found, model().fit(X, y))
    assert (
        found.predict(da.from_array(X, chunks=(sizes, (6,)))).compute().tolist() == found.predict(X).tolist()
    )


def test_the_result_does_not_depend_on_the_scheduler(client):
    X, y = arrays(*rows()[:2])
    found = []
    for scheduler in ("threads", "sync"):
        with dask.config.set(scheduler=scheduler):
            found.append(model(loss="hinge").fit(X, y))
    with client.as_current():
        found.append(model(loss="hinge").fit(X, y))
    assert len({one.coef_.tobytes() for one in found}) == 1
    assert len({(one.certificate_.lower, one.certificate_.upper) for one in found}) == 1


def test_a_fitted_model_needs_no_dask(tmp_path):
    X, y, _ = rows()
    found = model().fit(*arrays(X, y))
    save(found, tmp_path / "model.safetensors")
    for copy in (pickle.loads(pickle.dumps(found)), load(tmp_path / "model.safetensors")):
        assert copy.predict(X).tolist() == found.predict(X).tolist()
        assert verify(copy, X, y).gap <= 1e-5


def test_predictions_are_lazy():
    X, y, _ = rows()
    found = MaxMarginClassifier().fit(X, y)

    def fails(block):
        raise AssertionError("computed")

    lazy = da.from_array(X, chunks=(300, -1)).map_blocks(fails, dtype=float, meta=np.empty((0, 0)))
    labels, scores = found.predict(lazy), found.decision_function(lazy)
    assert (labels.shape, labels.dtype) == ((2000,), found.classes_.dtype)
    assert (scores.shape, scores.dtype) == ((2000,), np.float64)
    with pytest.raises(AssertionError, match="computed"):
        labels.compute()


# verification


@pytest.mark.parametrize(
    ("classes", "options"),
    [(3, {}), (2, {"intercept_scaling": 1.0}), (2, {"fit_intercept": False}), (2, {"p": 3, "norm_power": 1})],
    ids=str,
)
def test_verify_recomputes_the_bounds_where_the_rows_are(classes, options):
    X, y, weights = rows(classes)
    parameters = {"loss": "hinge", "class_weight": {0: 0.5}} | options
    # with a dual variable for each row, and on partitions with two points that imply them
    fits = [MaxMarginClassifier(**parameters, tol=1e-5).fit(X, y, weights)]
    fits += [] if "p" in options else [model(**parameters).fit(*arrays(X, y, weights))]
    for found in fits:
        here, there = verify(found, X, y, weights), verify(found, *arrays(X, y, weights))
        for one, other, claim in zip(
            here.certificates, there.certificates, found.certificate_.certificates, strict=True
        ):
            np.testing.assert_allclose([one.lower, one.upper], [other.lower, other.upper], rtol=1e-9)
            np.testing.assert_allclose([other.lower, other.upper], [claim.lower, claim.upper], rtol=1e-9)


@pytest.mark.parametrize("where", ["memory", "partitions"])
def test_verify_refuses_other_data_and_bounds_that_do_not_hold(where):
    X, y, weights = rows()
    data = arrays(X, y, weights)
    if where == "memory":
        found = MaxMarginClassifier(loss="hinge").fit(X, y, weights)
    else:
        found = model(loss="hinge").fit(*data)
    claim = found.certificate_
    for name, value in (("lower", claim.lower * 1.0001), ("upper", claim.upper * 0.9999)):
        found.certificate_ = type(claim)(**vars(claim) | {name: value})
        with pytest.raises(CertificateError, match=f"the {name} bound fails"):
            verify(found, *data)
    found.certificate_ = type(claim)(**vars(claim) | {"dual": -claim.dual})
    with pytest.raises(CertificateError, match="negative"):
        verify(found, *data)
    found.certificate_ = claim
    for others in ((X + 1e-3, y, weights), (X[::-1], y, weights), (X, 1 - y, weights), (X, y, weights + 1.0)):
        with pytest.raises(CertificateError, match="other data"):
            verify(found, *arrays(*others))
    # a larger objective at other weights
    found.coef_ = found.coef_ * 1.01
    with pytest.raises(CertificateError, match="the upper bound fails"):
        verify(found, *data)


def test_verify_does_not_trust_dual_variables_above_their_caps():
    X, y, _ = rows()
    found = MaxMarginClassifier(loss="hinge", tol=0.1).fit(X, y)
    claim = found.certificate_
    found.certificate_ = type(claim)(**vars(claim) | {"dual": claim.dual * 1.05, "lower": claim.upper})
    with pytest.raises(CertificateError, match="the lower bound fails"):
        verify(found, *arrays(X, y))


def test_verify_names_the_models_that_it_cannot_check_on_partitions():
    X, y, _ = rows(n=60)
    with pytest.raises(CertificateError, match="memory"):
        verify(KernelMaxMarginClassifier().fit(X, y), *arrays(X, y))
    with pytest.raises(CertificateError, match="not fitted"):
        verify(MaxMarginClassifier(), *arrays(X, y))
    with pytest.raises(CertificateError, match="memory"):
        verify(separate(X, y), *arrays(X, y))


# data that cannot be used


def test_collections_that_do_not_fit_together_are_refused():
    X, y, _ = rows()
    good, labels = arrays(X, y)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    for data, sentence in (
        ((good.rechunk((300, 2)), labels), "all columns of X must be in one chunk, not in 3: X.rechunk"),
        ((good, labels.rechunk(400)), r"the same partitions; X has 7, y has 5: y.rechunk\(X.chunks\[0\]\)"),
        ((good, da.from_array(y, chunks=((200, *[300] * 6),))), "other lengths"),
        ((good, None), "y must be a Dask array or Series"),
        ((good, y), r"y must be a Dask array or Series.*dask.array.from_array"),
        ((frame, dd.from_pandas(pd.Series(y), npartitions=2)), "repartition"),
        ((frame, dd.from_pandas(pd.Series(y[:-1]), npartitions=3)), "as many labels as rows"),
        ((frame.assign(town="here"), labels), "column 'town' of X holds .* encode"),
        ((good.astype(complex), labels), "X holds complex128"),
        ((good[:, 0], labels), "two dimensions"),
        ((good, labels[:, None]), "one dimension"),
    ):
        with pytest.raises(ValueError, match=sentence):
            MaxMarginClassifier().fit(*data)


@pytest.mark.parametrize("masked", ["X", "y", "weights"])
def test_masked_entries_are_refused(masked):
    X, y, weights = rows()
    given = {"X": X, "y": y, "weights": weights}
    given[masked] = np.ma.array(given[masked])
    given[masked][777] = np.ma.masked
    words = {"X": "column 0 is nan", "y": "its label is None", "weights": "its sample weight is nan"}[masked]
    with pytest.raises(ValueError, match=rf"row 777 \(counted from 0\): {words}"):
        MaxMarginClassifier().fit(*arrays(*given.values()))
    if masked != "weights":
        with pytest.raises(ValueError, match="masked entries"):
            separate(*arrays(given["X"], given["y"]))


def test_labels_of_partitions_that_would_become_one_class_are_refused():
    X, big = np.arange(8.0).reshape(4, 2), 2**53

    def fitted(*parts):
        labels = [da.from_delayed(dask.delayed(np.asarray(part)), (2,), np.int64) for part in parts]
        return MaxMarginClassifier().fit(da.from_array(X, chunks=(2, 2)), da.concatenate(labels))

    assert fitted([big, big], [big + 1, big + 1]).classes_.tolist() == [big, big + 1]
    with pytest.raises(ValueError, match=r"row 3 \(counted from 0\): its label is NaT"):
        fitted(np.array(["2020", "2021"], "M8[D]"), np.array(["2020", "NaT"], "M8[D]"))
    y = dd.from_pandas(
        pd.Series(np.array([1, 2, 2**63, 2**63 + 1], np.uint64), dtype="UInt64"), npartitions=2
    )
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    assert MaxMarginClassifier().fit(frame, y).classes_.tolist() == [1, 2, 2**63, 2**63 + 1]


def test_rows_that_cannot_be_used_are_named():
    X, y, weights = rows()
    X[1234, 3] = np.nan
    with pytest.raises(ValueError, match=r"row 1234 \(counted from 0\): column 3 is nan"):
        MaxMarginClassifier().fit(*arrays(X, y))
    X[1234, 3], weights[777] = 0.0, -1.0
    with pytest.raises(ValueError, match=r"row 777 \(counted from 0\): its sample weight is -1.0"):
        MaxMarginClassifier().fit(*arrays(X, y, weights))
    with pytest.raises(ValueError, match="2 classes"):
        MaxMarginClassifier().fit(*arrays(X, np.ones(2000, int)))
    with pytest.raises(ValueError, match=r"gather a Dask collection with X.compute\(\)"):
        MaxMarginClassifier(algorithm="dcd").fit(*arrays(X, y))
    for parameters in ({"C": np.inf}, {"p": 1}):
        with pytest.raises(ValueError, match="fit a sample of the rows"):
            MaxMarginClassifier(**parameters).fit(*arrays(X, y))


# faults


def test_a_callback_and_the_time_limit_end_the_fit(scheduler):
    X, y = arrays(*rows()[:2])
    stopped = model(tol=1e-12, callback=lambda report: report.round > 0).fit(X, y)
    assert stopped.status_ is Status.INTERRUPTED
    limited = model(tol=1e-14, max_time=2.0, callback=lambda report: report.round and time.sleep(2.0))
    assert limited.fit(X, y).status_ is Status.MAX_TIME


def test_the_first_reading_ends_before_there_is_a_model(scheduler):
    X, y = arrays(*rows()[:2])
    read = []

    def slow_block(block):
        time.sleep(0.6)
        read.append(block)
        return block

    found = model(max_time=1e-9)
    with pytest.raises(ReadingStoppedError, match="there is no model"):
        found.fit(X.map_blocks(slow_block, dtype=float, meta=np.empty((0, 0))), y)
    assert not hasattr(found, "coef_")
    assert len(read) < 7


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_partitions_and_not_the_fit():
    X, y = arrays(*rows()[:2])
    with dask.config.set(scheduler="sync"):
        expected = model(loss="hinge", tol=1e-8).fit(X, y)
    killed = []
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:

        def kill(report):
            """Kill one of the workers after the first pass."""
            if report.round and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        found = model(loss="hinge", tol=1e-8, callback=kill).fit(X, y)
    assert len(killed) == 1
    assert found.n_iter_ > 1
    assert found.status_ is Status.CERTIFIED
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.certificate_.lower == expected.certificate_.lower
    assert found.certificate_.upper == expected.certificate_.upper


@pytest.mark.parametrize("seed", [0, 1, 5, 8])
def test_few_rows_at_the_margin_are_certified(seed):
    """The sample is all rows: the first point is the optimum, where rounding decides on which side the rows are."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 30)), int(rng.integers(2, 30))
    X, y = rng.normal(size=(n, d)), np.arange(n) % 2
    rows, labels = da.from_array(X, chunks=(n, -1)), da.from_array(y, chunks=n)
    model = MaxMarginClassifier(C=100.0, random_state=0).fit(rows, labels)
    assert model.status_ == "CERTIFIED"


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask's reader, with new versions of pandas
@pytest.mark.parametrize("named", [False, True])
def test_columns_of_files_whose_partitions_dask_would_fuse_differently(named, tmp_path, scheduler):
    """Of one column of many small files several are read at once, of many columns fewer."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: the extra maxmargin[arrow]")
    X, y, weights = rows(n=1300, d=12)
    frame = pd.DataFrame(X, columns=list("abcdefghijkl")).assign(bought=y == 1, weight=weights)
    for k in range(13):
        frame[100 * k : 100 * (k + 1)].to_parquet(tmp_path / f"part.{k}.parquet", index=False)
    parts = dd.read_parquet(tmp_path)
    others = parts.drop(columns=["bought", "weight"])
    data = (parts, "bought", "weight") if named else (others, parts["bought"], parts["weight"])
    found = model(memory="200kB").fit(*data)
    order = parts.compute()  # that of the names of the files
    assert_same_fit(
        found, model(memory="200kB").fit(order[others.columns].to_numpy(), order["bought"], order["weight"])
    )
    assert_same_bounds(verify(found, *data), found.certificate_)


def test_kernel_fits_are_refused_before_rows_are_gathered():
    X, y = arrays(*rows()[:2])
    with pytest.raises(ValueError, match=r"kernel .* in memory: X.compute\(\)"):
        KernelMaxMarginClassifier().fit(X, y)
    with pytest.raises(ValueError, match="no column 'bougt'"):
        MaxMarginClassifier().fit(dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0]}), npartitions=1), "bougt")
