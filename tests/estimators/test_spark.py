"""Fits, predictions and verification of Spark frames, in one session with two threads that tries tasks again."""

import shutil
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from clusters import assert_same_bounds, assert_same_fit, model, rows

from maxmargin import (
    CertificateError,
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    ReadingStoppedError,
    Status,
    verify,
)

SILENT = "PySpark does not yet fully support pandas"
pytestmark = pytest.mark.filterwarnings(f"ignore:{SILENT}:FutureWarning")
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", SILENT, FutureWarning)
    pytest.importorskip("pyspark", reason="PySpark is not installed: the extra maxmargin[spark]")
    pd = pytest.importorskip("pandas", reason="pandas is not installed: the extra maxmargin[spark]")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: the extra maxmargin[spark]")
    from pyspark.ml.linalg import Vectors
    from pyspark.sql import SparkSession

if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

NAMES = [*"abcde", "x.y"]


@pytest.fixture(scope="module")
def spark():
    """A session of two threads, which tries a task four times, and logs nothing."""
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # starts sooner
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "6",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    handler = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.filterwarnings("ignore", SILENT, FutureWarning)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = SparkSession.builder.master("local[2, 4]").config(map=settings).getOrCreate()
        signal.signal(signal.SIGINT, handler)  # Spark has set its own
        yield session
        session.stop()


@pytest.fixture(scope="module")
def frame(spark):
    """Rows of three classes in six partitions, of which at least three are empty and no other has all classes."""
    X, y, weights = rows(classes=3)
    table = pd.DataFrame(X, columns=NAMES).assign(label=y, weight=weights)
    return spark.createDataFrame(table).repartition(6, "label").cache()


@pytest.fixture(scope="module")
def table(frame):
    """The rows of the frame in its order."""
    return collected(frame)


@pytest.fixture(scope="module")
def fitted(frame):
    return three_classes().fit(frame, "label", sample_weight="weight")


def collected(frame):
    """Return the rows of a frame; `toPandas` warns with new versions of pandas."""
    return pd.DataFrame(frame.collect(), columns=frame.columns)


def three_classes():
    return model(class_weight="balanced", memory="120kB")


def test_fit_of_a_frame_is_the_fit_of_the_same_rows_in_memory(fitted, frame, table):
    here = three_classes().fit(table[NAMES].to_numpy(), table["label"].to_numpy(), table["weight"].to_numpy())
    assert_same_fit(fitted, here)
    np.testing.assert_allclose(fitted.class_weight_, here.class_weight_)
    assert fitted.feature_names_in_.tolist() == NAMES
    there = verify(fitted, frame, "label", "weight")
    assert_same_bounds(there, fitted.certificate_)
    assert_same_bounds(there, verify(fitted, table[NAMES], table["label"], table["weight"]))
    with pytest.raises(CertificateError, match="other data"):
        verify(fitted, frame, "label")


def test_predictions_are_columns(fitted, frame, table):
    # columns are found by their names, and others are kept
    order = ["weight", *NAMES[::-1]]
    kept = frame.select([f"`{name}`" for name in order])
    labels, scores = fitted.predict(kept), fitted.decision_function(kept)
    assert labels.columns == [*order, "prediction"]
    labels, scores = collected(labels), collected(scores)
    assert labels["prediction"].tolist() == fitted.predict(table[NAMES]).tolist()
    np.testing.assert_allclose(np.stack(scores["decision"]), fitted.decision_function(table[NAMES]))
    assert labels["weight"].tolist() == scores["weight"].tolist() == table["weight"].tolist()


def test_columns_that_cannot_be_used_are_refused(spark, frame, fitted):
    vectors = spark.createDataFrame([(0.0, Vectors.dense([1.0, 2.0]), 3)], ["y", "v", "more"])
    dates = spark.sql("select 1.0D as a, 2.0D as b, date'2020-01-01' as day, 'no' as y, array(1.0D) as list")
    for X, y, weights, sentence in (
        (frame, None, None, "are names of columns of X; got None"),
        (frame, "labl", None, "one column 'labl'; its columns are"),
        (frame, "label", "w", "one column 'w'"),
        (dates.drop("list"), "y", None, "column 'day' of X holds date, and no numbers: encode"),
        (dates.drop("day"), "y", None, "array_to_vector"),
        (dates.select("a", "day"), "day", None, r"cast column 'day' \(date\) to double"),
        (dates.select("a", "b", "y"), "a", "y", r"cast column 'y' \(string\) to double"),
        (dates.select("y"), "y", None, "no column of features"),
        (vectors, "y", None, r"vectors must be the only features: X.select\('v', 'y'\)"),
        (frame.rdd, "label", None, "must be a Spark DataFrame"),
    ):
        with pytest.raises(ValueError, match=sentence):
            MaxMarginClassifier().fit(X, y, weights)
    with pytest.raises(ValueError, match="one column 'a'"):
        fitted.predict(vectors)
    with pytest.raises(ValueError, match="a column 'prediction' already"):
        fitted.predict(fitted.predict(frame))
    with pytest.raises(ValueError, match="X has 8 features"):
        MaxMarginClassifier().fit([[0.0], [1.0]], [0, 1]).predict(frame)
    with pytest.raises(ValueError, match=r"a Spark frame with X.toPandas\(\)"):
        MaxMarginClassifier(algorithm="dcd").fit(frame, "label")
    with pytest.raises(ValueError, match="fit a sample of the rows"):
        MaxMarginClassifier(C=np.inf).fit(frame, "label")
    kernel = KernelMaxMarginClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(CertificateError, match="memory"):
        verify(kernel, frame, "label")


@pytest.mark.slow
@pytest.mark.parametrize(("kept", "sparse"), [(0.1, True), (0.7, False)])
def test_vectors_are_rows(spark, kept, sparse):
    X, y, _ = rows()
    X, text = np.where(np.random.default_rng(1).random(X.shape) < kept, X, 0.0), np.array(["no", "yes"])[y]
    vectors = [
        Vectors.dense(row) if i % 3 else Vectors.sparse(6, np.flatnonzero(row), row[row != 0.0])
        for i, row in enumerate(X)
    ]
    frame = spark.createDataFrame(zip(vectors, text.tolist(), strict=True), ["features", "label"]).cache()
    found = model().fit(frame, "label")
    here = model().fit(X, text.astype(object))
    assert found.classes_.tolist() == here.classes_.tolist() == ["no", "yes"]
    assert found.certificate_.lower <= here.certificate_.upper <= found.certificate_.upper * (1.0 + 1e-5)
    assert not hasattr(found, "feature_names_in_")
    assert verify(found, frame, "label").gap <= 1e-5
    assert collected(found.predict(frame))["prediction"].tolist() == found.predict(X).tolist()
    scores = collected(found.decision_function(frame))["decision"]
    np.testing.assert_allclose(scores, found.decision_function(X), atol=1e-12)


@pytest.mark.slow
def test_results_of_many_partitions_are_merged_in_their_order(spark):
    """Of more than 16 partitions the executors merge groups."""
    X, y, _ = rows(n=1000)
    table = pd.DataFrame(X, columns=NAMES).astype("float32").assign(label=y == 1)
    frame = spark.createDataFrame(table).repartition(20).cache()
    ordered = collected(frame)
    here = MaxMarginClassifier(tol=1e-3).fit(ordered[NAMES].to_numpy(), ordered["label"].to_numpy())
    there = model(tol=1e-3, memory="20kB").fit(frame, "label")
    assert there.classes_.tolist() == [False, True]
    assert there.certificate_.lower <= here.certificate_.upper <= there.certificate_.upper * (1.0 + 1e-3)
    assert there.certificate_.gap <= 1e-3
    assert collected(there.predict(frame))["prediction"].tolist() == there.predict(ordered[NAMES]).tolist()


@pytest.mark.slow
def test_rows_that_cannot_be_used_are_named(spark):
    for column, bad, sentence in (
        ("a", np.nan, r"row 17 \(counted from 0\): column 0 is nan"),
        ("a", np.inf, r"row 17 \(counted from 0\): column 0 is inf"),
        ("weight", -1.0, r"row 17 \(counted from 0\): its sample weight is -1.0"),
        ("weight", None, r"row 17 \(counted from 0\): its sample weight is nan"),
        ("label", None, r"row 17 \(counted from 0\): its label is None: leave the row out"),
        ("v", None, r"row 17 \(counted from 0\): its vector is null"),
        ("v", Vectors.dense([1.0]), r"row 17 \(counted from 0\): its vector has 1 entries, others 2"),
    ):
        records = [
            {"label": str(i % 2), "weight": 1.0}
            | ({"v": Vectors.dense([1.0, i])} if column == "v" else {"a": i + 0.5})
            for i in range(30)
        ]
        records[17][column] = bad
        with pytest.raises(ValueError, match=sentence):
            MaxMarginClassifier().fit(spark.createDataFrame(records), "label", "weight")
    with pytest.raises(ValueError, match="Found no rows"):
        MaxMarginClassifier().fit(spark.createDataFrame(records).drop("v").where("weight < 0"), "label")


@pytest.mark.slow
def test_a_fit_that_is_stopped_keeps_the_best_model(frame):
    found = model(tol=1e-12, callback=lambda report: report.gap < 0.1).fit(frame, "label", "weight")
    assert found.status_ is Status.INTERRUPTED
    assert min(part.gap for part in verify(found, frame, "label", "weight").certificates) < 0.1
    with pytest.raises(ReadingStoppedError, match="there is no model"):
        model(max_time=1e-9).fit(frame, "label")


@pytest.mark.slow
def test_rows_that_change_between_passes_are_noticed(spark):
    noise = "reflect('java.lang.Math', 'random')"  # other numbers in each computation
    frame = spark.range(4000).selectExpr(*(f"double({noise}) as {name}" for name in "abc"), "id % 2 as label")
    with pytest.raises(ValueError, match="changed while they were read"):
        # as if the executors were lost with the rows that they keep
        model(tol=1e-12, callback=lambda report: report.round and spark.catalog.clearCache()).fit(
            frame, "label"
        )


def test_a_task_that_fails_once_costs_no_more_than_its_partition(frame, table, tmp_path):
    """The session tries a task up to four times."""
    failed = str(tmp_path / "failed")

    def fail_once(batches):
        try:
            open(failed, "x").close()
        except FileExistsError:
            yield from batches
            return
        raise RuntimeError("a fault of the test")

    kept = frame.drop("weight")
    positional = kept.toDF(*(f"c{k}" for k in range(len(kept.columns))))
    faulty = positional.mapInArrow(fail_once, positional.schema).toDF(*kept.columns)
    found, whole = three_classes().fit(faulty, "label"), three_classes().fit(kept, "label")
    assert Path(failed).exists()
    assert found.coef_.tobytes() == whole.coef_.tobytes()
    assert_same_bounds(found.certificate_, whole.certificate_)


@pytest.mark.slow
def test_the_code_of_the_page_runs(spark, capsys):
    page = Path(__file__).resolve().parents[2] / "docs/howto/spark.md"
    exec(page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out.startswith("CERTIFIED")


@pytest.mark.slow
def test_jobs_are_cancelled(spark):
    def wait(batches):
        time.sleep(600.0)
        yield from batches

    schema = "a double, b double, label long"
    slow = spark.range(2).selectExpr("rand() as a", "rand() as b", "id as label").mapInArrow(wait, schema)
    began = time.perf_counter()
    with pytest.raises(ReadingStoppedError):
        model(max_time=2.0).fit(slow, "label")
    assert time.perf_counter() - began < 300.0
