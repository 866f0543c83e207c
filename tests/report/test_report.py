"""HTML reports: contents, self-containedness, accessibility and display in a browser."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from PIL import Image
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

from maxmargin import (
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    OnlineMarginClassifier,
    load,
    save,
    support_report,
)
from maxmargin.cli.app import app
from maxmargin.io.json import to_json
from maxmargin.io.text_models import to_liblinear
from maxmargin.report import Outcome, write_report

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 4)), 3)
Y = np.where(X[:, 0] + 0.4 * RNG.normal(size=60) > 0.0, "yes", "no")
THREE_CLASSES = np.digitize(X[:, 0] + 0.2 * RNG.normal(size=60), [-0.5, 0.5])
VOID = ("meta", "img")
REPORT_OPTIONS = {"name": "made up", "feature_names": ["length", "width", "height", "weight"], "top": 7}


class Page(HTMLParser):
    """Parsed contents of a page; checks that elements are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words, self.cells = [], [], [], []
        self.tables = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.words.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    @property
    def text(self):
        return " ".join("".join(self.words).split())

    @property
    def images(self):
        return [attributes for tag, attributes in self.tags if tag == "img"]


def write_and_parse(tmp_path, *arguments, **options):
    recheck = write_report(*arguments, tmp_path / "report.html", **options)
    return recheck, Page((tmp_path / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def linear():
    return MaxMarginClassifier(algorithm="dcd", loss="hinge", random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def report_file(linear, tmp_path_factory):
    """A full report of the linear model: (result of the recheck, path)."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(linear, X, Y, path, **REPORT_OPTIONS), path


@pytest.fixture
def without_figures(monkeypatch):
    """Skip figures, which take most of the time."""
    monkeypatch.setattr("maxmargin.report.figures.figures", lambda subject: iter([]))


@pytest.fixture(scope="module")
def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    pytest.skip("no chromium, chromium-browser or google-chrome is installed")
    return None


def test_report_of_a_linear_model_states_bounds_rows_and_weights(linear, report_file):
    recheck, page = report_file[0], Page(report_file[1].read_text(encoding="utf-8"))
    assert recheck.outcome is Outcome.HOLDS
    assert recheck.words == ""
    assert page.text.startswith("Maximum-margin report: made up")
    assert "CERTIFIED — The certified gap, " in page.text
    assert "every bound was recomputed from the 60 rows of these data, and holds" in page.text
    assert f"No linear function has an objective below {recheck.certificate.lower:.12g}" in page.text
    assert f"an objective of at most {recheck.certificate.upper:.12g}" in page.text
    right = int(np.sum(linear.predict(X) == Y))
    assert f"({right} of 60 rows)" in page.text
    # bounds, margins, surface, robustness
    assert len(page.images) == 4
    assert all(len(image["alt"]) > 40 for image in page.images)
    rows, certain, features = page.tables
    assert rows[0] == ["row", "label", "dual weight", "at its cap", "margin y f(x)", "where"]
    assert len(rows) == 8
    margins = np.where(Y == "yes", 1.0, -1.0) * linear.decision_function(X)
    alpha = np.zeros(60)
    alpha[linear.certificate_.support] = linear.certificate_.dual
    for row, label, dual, capped, margin, where in rows[1:]:
        i = int(row) - 1  # rows are counted from 1
        assert label == Y[i]
        assert float(dual) == pytest.approx(alpha[i], rel=1e-5)
        assert capped == ("yes" if alpha[i] > 1.0 - 1e-9 else "no")
        assert float(margin) == pytest.approx(margins[i], rel=1e-5)
        assert where == ("on the wrong side" if margins[i] < 0.0 else "inside the margin")
    listed = [int(row[0]) - 1 for row in rows[1:]]
    assert min(alpha[listed]) >= max(np.delete(alpha, listed)) - 1e-9
    assert margins[listed].tolist() == sorted(margins[listed])  # all at the cap: smallest margins first
    report = support_report(linear, X, Y)
    optimum = report.parts[0].optimum
    assert certain[1][1:3] == [str(int(optimum.weightless.sum())), str(int(optimum.inside.sum()))]
    least, most = report.leave_one_out
    assert f"between {least} and {most} of 60 rows would be labelled wrongly" in page.text
    order = np.argsort(-np.abs(linear.coef_[0]))
    assert [line[0] for line in features[1:]] == [REPORT_OPTIONS["feature_names"][j] for j in order]
    assert [float(line[1]) for line in features[1:]] == pytest.approx(linear.coef_[0][order], rel=1e-5)


def test_report_has_no_external_resources(linear, tmp_path):
    write_and_parse(
        tmp_path, linear, X, Y, name='<script>alert("x")</script>', feature_names=["<b>", "&amp;", '"', "'"]
    )
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "<script" not in text
    assert '<script>alert("x")</script>' in page.text
    assert {line[0] for line in page.tables[-1][1:]} == {"<b>", "&amp;", '"', "'"}
    for _, attributes in page.tags:
        assert not {"href", "srcset", "action", "onload"} & attributes.keys()
        assert attributes.get("src", "data:").startswith("data:")
    assert "http" not in re.sub(r'http-equiv|base64,[^"]*', "", text)
    assert "url(" not in text
    assert "@import" not in text
    for image in page.images:
        drawing = base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,")).decode()
        tree = ElementTree.fromstring(drawing)
        assert tree.tag.endswith("svg")
        assert "prefers-color-scheme:dark" in drawing
        assert "#1f2933" not in drawing.replace(
            "--c0:#1f2933", ""
        )  # the text colour depends on the colour scheme
        for node in tree.iter():
            for key, value in node.attrib.items():
                if key.endswith("href"):
                    assert value.startswith("#")


def test_names_are_drawn_literally(tmp_path):
    names = [r"price in \$ $\foo$ half \ud800", "日本 over $50K"]
    labels = np.where(Y == "yes", "over $50K", "under $5^{ 日本")
    # with two features the axes have their names
    model = MaxMarginClassifier(random_state=0).fit(X[:, :2], labels)
    _, page = write_and_parse(tmp_path, model, X[:, :2], labels, name="$x \ud800$", feature_names=names)
    assert page.text.startswith("Maximum-margin report: $x ?$")
    assert {line[0] for line in page.tables[-1][1:]} == {name.replace("\ud800", "?") for name in names}
    sides = "class under $5^{ 日本 against class over $50K"
    assert any(image["alt"].startswith(sides) for image in page.images)
    assert any("The decision surface in its two features" in image["alt"] for image in page.images)


def test_report_has_accessible_markup(linear, tmp_path, without_figures):
    _, page = write_and_parse(tmp_path, linear, X, Y)
    assert ("html", {"lang": "en"}) in page.tags
    headers = [attributes for tag, attributes in page.tags if tag == "th"]
    assert headers
    assert {attributes["scope"] for attributes in headers} == {"col", "row"}
    tags = [tag for tag, _ in page.tags]
    assert tags.count("table") == tags.count("caption") == tags.count("thead") == 3
    assert tags.count("h1") == tags.count("main") == tags.count("title") == 1
    named = {attributes["id"] for tag, attributes in page.tags if tag == "h2"}
    assert {attributes["aria-labelledby"] for tag, attributes in page.tags if tag == "section"} == named


def test_equal_input_gives_equal_files(linear, report_file, tmp_path, monkeypatch):
    one, two = tmp_path / "one.html", tmp_path / "two.html"
    write_report(linear, X, Y, one, **REPORT_OPTIONS)
    assert one.read_bytes() == report_file[1].read_bytes()
    monkeypatch.setattr("maxmargin.report.figures.figures", lambda subject: iter([]))
    write_report(linear, X, Y, one)
    write_report(linear, sp.csr_matrix(X), Y, two)
    words = [Page(path.read_text(encoding="utf-8")).text for path in (one, two)]
    assert words[0] == words[1]


class TestData:
    def test_other_data_are_detected(self, linear, tmp_path):
        others = np.where(np.arange(40) < 3, "perhaps", Y[:40])
        recheck, page = write_and_parse(tmp_path, linear, X[:40], others)
        assert recheck.outcome is Outcome.OTHER_DATA
        assert recheck.certificate is linear.certificate_
        assert "Other data — these are not the data that the model was fitted to" in page.text
        assert "they were not rechecked" in page.text
        assert "Proof rechecked" not in page.text
        assert "3 rows have labels that the model does not know" in page.text
        right = int(np.sum(linear.predict(X[:40]) == others))
        assert f"({right} of 40 rows)" in page.text
        assert "the rows of these data are others, and are not listed" in page.text
        assert len(page.tables) == 1  # features
        assert len(page.images) == 4
        assert not any("support vectors" in image["alt"] for image in page.images)

    def test_data_with_unknown_labels_only_are_reported(self, linear, tmp_path):
        recheck, page = write_and_parse(tmp_path, linear, X, np.arange(60) % 2)
        assert recheck.outcome is Outcome.OTHER_DATA
        assert len(page.images) == 1  # the bounds of the fit
        assert "0 % (0 of 60 rows); 60 rows have labels" in page.text

    def test_failing_bounds_are_reported(self, linear, tmp_path, without_figures):
        forged = MaxMarginClassifier(algorithm="dcd", loss="hinge", random_state=0).fit(X, Y)
        claim = forged.certificate_
        forged.certificate_ = dataclasses.replace(claim, lower=1.01 * claim.lower, upper=1.02 * claim.upper)
        recheck, page = write_and_parse(tmp_path, forged, X, Y)
        assert recheck.outcome is Outcome.FAILS
        assert "the lower bound fails" in recheck.words
        assert "The proof does not hold — the lower bound fails" in page.text
        assert "the data contradict them" in page.text
        assert "Proof rechecked" not in page.text
        assert any(attributes.get("class") == "verdict bad" for _, attributes in page.tags)

    def test_sample_and_class_weights_determine_the_caps(self, tmp_path, without_figures):
        weights = np.linspace(0.2, 2.0, 60)
        model = MaxMarginClassifier(loss="hinge", class_weight={"yes": 3.0, "no": 0.5}, C=0.1, random_state=0)
        model.fit(X, Y, sample_weight=weights)
        recheck, page = write_and_parse(tmp_path, model, X, Y, sample_weight=weights, top=60)
        assert recheck.outcome is Outcome.HOLDS
        for row, label, dual, capped, *_ in page.tables[0][1:]:
            cap = 0.1 * weights[int(row) - 1] * (3.0 if label == "yes" else 0.5)
            assert (float(dual) > cap * (1.0 - 1e-5)) == (capped == "yes")
        assert write_and_parse(tmp_path, model, X, Y)[0].outcome is Outcome.OTHER_DATA

    def test_names_of_a_frame_are_used(self, tmp_path, without_figures):
        frame = pd.DataFrame(X, columns=["one", "two", "three", "four"])
        model = MaxMarginClassifier(random_state=0).fit(frame, Y)
        recheck, page = write_and_parse(tmp_path, model, frame, Y)
        assert recheck.outcome is Outcome.HOLDS
        assert {line[0] for line in page.tables[-1][1:]} == {"one", "two", "three", "four"}
        with pytest.raises(ValueError, match="same order"):
            write_report(model, frame[["two", "one", "three", "four"]], Y, tmp_path / "other.html")
        assert not (tmp_path / "other.html").exists()


class TestModels:
    @pytest.mark.parametrize("scheme", ["ovr", "ovo"])
    def test_multiclass_kernel_report_has_a_table_per_problem(self, scheme, tmp_path):
        model = KernelMaxMarginClassifier(multi_class=scheme).fit(X, THREE_CLASSES)
        recheck, page = write_and_parse(tmp_path, model, X, THREE_CLASSES)
        assert recheck.outcome is Outcome.HOLDS
        bounds, *rows, certain = page.tables
        assert [line[0] for line in certain[1:]] == [line[0] for line in bounds[1:]]
        names = {"ovr": [f"class {k} against the rest" for k in range(3)]}
        names["ovo"] = [f"class {i} against class {j}" for i, j in ((0, 1), (0, 2), (1, 2))]
        assert [line[0] for line in bounds[1:]] == names[scheme]
        for line, part in zip(bounds[1:], recheck.certificate, strict=True):
            assert float(line[1]) == pytest.approx(part.lower, rel=1e-8)
            assert float(line[2]) == pytest.approx(part.upper, rel=1e-8)
        assert len(rows) == 3
        for found, part in zip(rows, model.certificate_, strict=True):
            assert {int(line[0]) - 1 for line in found[1:]} <= set(part.support.tolist())
        assert "has no weights of single features" in page.text
        assert "each against the rest" in page.text or scheme == "ovo"

    def test_multiclass_linear_report_lists_weights_per_class(self, tmp_path, without_figures):
        model = MaxMarginClassifier(random_state=0).fit(X, THREE_CLASSES)
        _, page = write_and_parse(tmp_path, model, X, THREE_CLASSES, top=3)
        features = page.tables[-1]
        assert len(features) == 4
        assert features[0] == ["feature", *(f"class {k} against the rest" for k in range(3))]
        for line in features[1:]:
            j = int(line[0].split()[1]) - 1
            assert [float(cell) for cell in line[1:]] == pytest.approx(model.coef_[:, j], rel=1e-5)

    def test_tables_of_many_classes_are_shortened(self, tmp_path, without_figures):
        y = np.digitize(X[:, 0], np.quantile(X[:, 0], np.linspace(0, 1, 9)[1:-1]))
        _, page = write_and_parse(tmp_path, MaxMarginClassifier(random_state=0).fit(X, y), X, y, top=1)
        assert len(page.tables[0]) == 1 + 8  # bounds of all
        assert "Margins of 2 more problems are not drawn" in page.text
        assert "Rows of 2 more problems are not listed" in page.text
        assert "The first 6 of 8 problems are listed" in page.text

    def test_hard_margin_report_states_the_margin(self, tmp_path, without_figures):
        y = X[:, 0] > 0.0
        model = MaxMarginClassifier(C=np.inf, p=np.inf, random_state=0).fit(X, y)
        recheck, page = write_and_parse(tmp_path, model, X, y)
        assert f"{recheck.certificate.lower:.10g} away from it at least, measured in the ∞-norm" in page.text
        assert f"has a margin above {recheck.certificate.upper:.10g}" in page.text
        assert "speaks for class True, one of negative weight for class False" in page.text

    def test_inseparable_report_states_the_proof(self, tmp_path, monkeypatch):
        model = MaxMarginClassifier(C=np.inf, random_state=0).fit(X, Y)
        recheck, page = write_and_parse(tmp_path, model, X, Y)
        assert recheck.outcome is Outcome.HOLDS
        assert "INSEPARABLE — No surface separates the classes" in page.text
        assert "The exact proof" in page.text
        assert " ".join(str(model.verdict_).split()) in page.text
        assert "Some row is on the wrong side of the surface" in page.text
        assert "best margin ≤" not in page.text
        assert "Certified bounds against time" not in page.text
        model.verdict_ = dataclasses.replace(model.verdict_, weights=model.verdict_.weights[::-1])
        assert write_and_parse(tmp_path, model, X, Y)[0].outcome is Outcome.FAILS
        monkeypatch.setattr("maxmargin.report.figures.figures", lambda subject: iter([]))
        several = MaxMarginClassifier(C=np.inf, random_state=0).fit(X, THREE_CLASSES)
        assert "The exact proof about class 1" in write_and_parse(tmp_path, several, X, THREE_CLASSES)[1].text

    def test_report_of_an_unfinished_fit_states_the_gap(self, tmp_path, without_figures):
        model = MaxMarginClassifier(algorithm="dcd", max_iter=1, tol=1e-12, C=1e4, random_state=0)
        model._exact = False
        model.fit(X, Y)
        _, page = write_and_parse(tmp_path, model, X, Y)
        assert f"{model.status_.value} — " in page.text
        assert "above tol=1e-12" in page.text
        assert any(attributes.get("class") == "verdict fair" for _, attributes in page.tags)

    def test_precomputed_kernels_and_single_features_have_no_surface(self, tmp_path):
        gram = X @ X.T
        recheck, page = write_and_parse(
            tmp_path, KernelMaxMarginClassifier(kernel="precomputed").fit(gram, Y), gram, Y
        )
        assert recheck.outcome is Outcome.HOLDS
        assert not any("surface" in image["alt"] for image in page.images)
        thin = MaxMarginClassifier(random_state=0).fit(X[:, :1], Y)
        assert not any(
            "surface" in image["alt"] for image in write_and_parse(tmp_path, thin, X[:, :1], Y)[1].images
        )

    @pytest.mark.parametrize("cls", [MaxMarginClassifier, KernelMaxMarginClassifier])
    def test_report_of_a_loaded_model_is_identical(self, cls, tmp_path, without_figures):
        model = cls().fit(X, THREE_CLASSES)
        save(model, tmp_path / "m")
        write_report(model, X, THREE_CLASSES, tmp_path / "one.html")
        write_report(load(tmp_path / "m"), X, THREE_CLASSES, tmp_path / "two.html")
        assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


class TestRefusals:
    def test_invalid_input_is_refused(self, linear, tmp_path):
        path = tmp_path / "report.html"
        with pytest.raises(ValueError, match=r"a report is about a certificate.*got OnlineMarginClassifier"):
            write_report(OnlineMarginClassifier(random_state=0).fit(X, Y), X, Y, path)
        with pytest.raises(NotFittedError):
            write_report(MaxMarginClassifier(), X, Y, path)
        with pytest.raises(ValueError, match="top must be a whole number of at least 1; got 0"):
            write_report(linear, X, Y, path, top=0)
        with pytest.raises(ValueError, match="expecting 4 features"):
            write_report(linear, X[:, :2], Y, path)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            write_report(linear, X, Y[:5], path)
        with pytest.raises(ValueError, match="a name for each of 4 features; got 1"):
            write_report(linear, X, Y, path, feature_names=["a"])
        incomplete = np.where(np.arange(60)[:, None] < 20, [1.0, np.nan, 1.0, 1.0], X)
        with pytest.raises(ValueError, match="column 1 is missing in 20 of 60 rows"):
            write_report(linear, incomplete, Y, path)
        with pytest.raises(FileNotFoundError):
            write_report(linear, X, Y, tmp_path / "nowhere" / "report.html")
        assert not path.exists()

    def test_failed_figure_keeps_the_old_report(self, linear, tmp_path, monkeypatch):
        path = tmp_path / "report.html"
        path.write_text("the old one")

        def fail(*arguments, **options):
            raise MemoryError("no more")

        monkeypatch.setattr("maxmargin.report.figures.MarginDisplay.from_estimator", fail)
        with pytest.raises(MemoryError):
            write_report(linear, X, Y, path)
        assert path.read_text() == "the old one"
        assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]

    def test_missing_matplotlib_raises_import_error(self, linear, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match=r"need matplotlib: pip install 'maxmargin\[plot\]'"):
            write_report(linear, X, Y, tmp_path / "report.html")
        assert not (tmp_path / "report.html").exists()


class TestCommand:
    @pytest.fixture
    def files(self, tmp_path):
        data, model = tmp_path / "train.csv", tmp_path / "m.safetensors"
        lines = [",".join([*map(str, row), y]) for row, y in zip(X, Y, strict=True)]
        data.write_text("\n".join(["a,b,c,d,answer", *lines]) + "\n")
        self.run("fit", data, "-o", model, "--seed", 0)
        return data, model, tmp_path / "page.html"

    @staticmethod
    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    def test_command_writes_the_report(self, files, monkeypatch):
        data, model, path = files
        result = self.run("report", model, data, "-o", path)
        assert result.exit_code == 0
        assert result.stdout.splitlines()[0] == f"report: {path}"
        assert f"verified: recomputed from the 60 rows of {data}" in result.stdout
        page = Page(path.read_text(encoding="utf-8"))
        assert "Maximum-margin report: train.csv" in page.text
        assert {line[0] for line in page.tables[-1][1:]} == {"a", "b", "c", "d"}
        monkeypatch.setattr("maxmargin.report.figures.figures", lambda subject: iter([]))
        facts = json.loads(self.run("report", model, data, "-o", path, "--json", "--name", "mine").stdout)
        assert facts["outcome"] == "HOLDS"
        assert facts["report"] == str(path)
        assert self.run("report", model, data, "-o", path, "--quiet").stdout == ""

    def test_command_reports_other_data_and_failing_bounds(self, files, tmp_path, without_figures):
        data, model, path = files
        other = tmp_path / "other.csv"
        other.write_text("\n".join(data.read_text().splitlines()[:30]) + "\n")
        result = self.run("report", model, other, "-o", path)
        assert result.exit_code == 0
        assert "not verified: the data are not those of the fit (60 rows then, 29 now)" in result.stdout
        fitted = load(model)
        object.__setattr__(fitted.certificate_, "upper", 0.99 * fitted.certificate_.lower)
        object.__setattr__(fitted.certificate_, "lower", 0.98 * fitted.certificate_.lower)
        save(fitted, model)
        result = self.run("report", model, data, "-o", path)
        assert result.exit_code == 2
        assert "the certificate does not hold: the upper bound fails" in result.stdout
        assert "The proof does not hold" in Page(path.read_text(encoding="utf-8")).text

    def test_gap_above_the_tolerance_exits_with_3(self, files, tmp_path, without_figures):
        data, model, path = files
        fitted = load(model)
        fitted.tol = 1e-300
        certificate = fitted.certificate_
        object.__setattr__(certificate, "lower", 0.9 * certificate.lower)
        save(fitted, model)
        assert self.run("report", model, data, "-o", path).exit_code == 3

    def test_command_refuses_invalid_input(self, files, tmp_path, without_figures):
        data, model, path = files
        assert "this file is read from" in self.run("report", model, data, "-o", data).stderr
        (tmp_path / "new.csv").write_text("a,b,c,d\n1,2,3,4\n")
        result = self.run("report", model, tmp_path / "new.csv", "-o", path)
        assert result.exit_code == 2
        assert "the file has none" in result.stderr
        save(OnlineMarginClassifier(random_state=0).fit(X, Y), tmp_path / "stream")
        result = self.run("report", tmp_path / "stream", data, "-o", path)
        assert result.exit_code == 2
        assert "the model of a stream has no certificate" in result.stderr
        to_liblinear(load(model), tmp_path / "theirs", labels=[0, 1])
        self.run("import", tmp_path / "theirs", "-o", tmp_path / "imported")
        to_json(load(model), tmp_path / "m.json")
        self.run("import", tmp_path / "m.json", "-o", tmp_path / "again")
        for name, kind in (("imported", "liblinear"), ("again", "JSON")):
            result = self.run("report", tmp_path / name, data, "-o", path)
            assert result.exit_code == 2
            assert f"this model was read from a {kind} file, which holds no proof" in result.stderr
        result = self.run("report", model, data, "-o", tmp_path / "page.pdf")
        assert result.exit_code == 2
        assert "a report is an HTML page" in result.stderr
        assert not (tmp_path / "page.pdf").exists()
        assert not path.exists()


class TestBrowser:
    """The page in a real browser: display, and absence of requests."""

    @staticmethod
    def run(browser, profile, *options):
        done = subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                f"--user-data-dir={profile}", "--enable-logging=stderr", *options,
            ],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        assert "CONSOLE" not in done.stderr  # includes errors and refused requests
        return done.stdout

    def test_browser_shows_text_and_images_without_requests(self, browser, report_file, tmp_path):
        path = report_file[1]
        shown = Page(self.run(browser, tmp_path / "p", "--dump-dom", path.as_uri()))
        assert shown.text == Page(path.read_text(encoding="utf-8")).text
        assert len(shown.images) == 4
        # the same page with a script that reports what was drawn
        text = path.read_text(encoding="utf-8")
        script = (
            "<script>onload = () => document.body.dataset.seen = JSON.stringify({"
            "images: [...document.images].map(i => i.complete && i.naturalWidth),"
            "wide: document.documentElement.scrollWidth, window: innerWidth,"
            "requests: performance.getEntriesByType('resource').map(e => e.name.slice(0, 5)),"
            "title: document.title, verdict: document.querySelector('.verdict strong').innerText})</script></body>"
        )
        policy = re.search(r'<meta http-equiv="Content-Security-Policy"[^>]*>', text)[0]
        (tmp_path / "with_script.html").write_text(
            text.replace(policy, "").replace("</body>", script), encoding="utf-8"
        )
        for width in (1200, 500):
            options = (f"--window-size={width},900", "--dump-dom", (tmp_path / "with_script.html").as_uri())
            found = Page(self.run(browser, tmp_path / "p", *options))
            seen = json.loads(
                next(attributes for tag, attributes in found.tags if tag == "body")["data-seen"]
            )
            assert len(seen["images"]) == 4
            assert all(width > 100 for width in seen["images"])
            assert set(seen["requests"]) <= {"data:"}
            assert seen["title"] == "Maximum-margin report: made up"
            assert seen["verdict"] == "CERTIFIED"
            assert seen["wide"] <= seen["window"]  # no horizontal overflow

    @pytest.mark.parametrize(("scheme", "options"), [("light", []), ("dark", ["--force-dark-mode"])])
    def test_figures_follow_the_colour_scheme(self, browser, report_file, tmp_path, scheme, options):
        path, shot = report_file[1], tmp_path / "shot.png"
        self.run(
            browser,
            tmp_path / "p",
            "--window-size=1000,3200",
            f"--screenshot={shot}",
            *options,
            path.as_uri(),
        )
        with Image.open(shot) as image:
            pixels = np.asarray(image.convert("RGB"), dtype=int).reshape(-1, 3)
        corner = pixels[0].mean()
        assert corner > 200 if scheme == "light" else corner < 60
        lines = {"light": ("0072b2", "d55e00"), "dark": ("4aa8e0", "f0803c")}[scheme]
        for colour in lines:
            distance = np.abs(pixels - [int(colour[k : k + 2], 16) for k in (0, 2, 4)]).max(axis=1)
            assert np.sum(distance < 8) > 1000
