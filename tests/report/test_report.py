"""HTML reports: contents, self-containedness and accessibility."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import command
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, load, save, support_report
from maxmargin import report as pages

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 4)), 3)
Y = np.where(X[:, 0] + 0.4 * RNG.normal(size=60) > 0.0, "yes", "no")
THREE_CLASSES = np.digitize(X[:, 0] + 0.2 * RNG.normal(size=60), [-0.5, 0.5])
VOID = ("meta", "img")
ODD = ["<b>", "&amp;", '"', "price in \\$ $\\foo$ \ud800"]
REPORT_OPTIONS = {"name": '<script>alert("x")</script>', "feature_names": ODD, "top": 7}
NAMES = [name.replace("\ud800", "?") for name in ODD]


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


def load_copy(model, folder):
    save(model, folder / "copy")
    return load(folder / "copy")


def write_and_parse(tmp_path, *arguments, **options):
    recheck = pages.write_report(*arguments, tmp_path / "report.html", **options)
    return recheck, Page((tmp_path / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def linear():
    return MaxMarginClassifier(algorithm="dcd", loss="hinge", random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def report_file(linear, tmp_path_factory):
    """A full report of the linear model: (result of the recheck, text)."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    return pages.write_report(linear, X, Y, path, **REPORT_OPTIONS), path.read_text(encoding="utf-8")


def test_report_of_a_linear_model_states_bounds_rows_and_effects(linear, report_file):
    recheck, page = report_file[0], Page(report_file[1])
    assert (recheck.outcome, recheck.words) == (pages.Outcome.HOLDS, "")
    right = int(np.sum(linear.predict(X) == Y))
    for words in (
        'Maximum-margin report: <script>alert("x")</script>',
        "CERTIFIED — The certified gap",
        "every bound was recomputed from the 60 rows of these data, and holds",
        f"{recheck.certificate.lower:.12g} <= best objective <= {recheck.certificate.upper:.12g}",
        f"({right} of 60 rows)",
    ):
        assert words in page.text
    assert len(page.images) == 2  # bounds, margins
    assert all(len(image["alt"]) > 40 for image in page.images)
    rows, features = page.tables
    report = support_report(linear, X, Y)
    assert " ".join(report.text(1).split()) in page.text  # reports count from 1
    alpha, margins = report.parts[0].dual, report.parts[0].margin
    assert len(rows) == 8
    for row, label, dual, capped, margin in rows[1:]:
        i = int(row) - 1
        assert (label, capped) == (Y[i], "yes" if alpha[i] > 1.0 - 1e-9 else "no")
        assert [float(dual), float(margin)] == pytest.approx([alpha[i], margins[i]], rel=1e-5)  # digits
    listed = [int(row[0]) - 1 for row in rows[1:]]
    assert min(alpha[listed]) >= max(np.delete(alpha, listed)) - 1e-9
    assert margins[listed].tolist() == sorted(margins[listed])  # all at the cap: smallest margins first
    effects = linear.coef_[0] * X.std(axis=0)
    order = np.argsort(-np.abs(effects))
    assert [line[0] for line in features[1:]] == [NAMES[j] for j in order]
    for column, expected in ((1, linear.coef_[0]), (2, effects)):
        # printed with four digits at least
        assert [float(line[column]) for line in features[1:]] == pytest.approx(expected[order], rel=5e-4)


def test_report_has_accessible_markup_and_no_external_resources(report_file):
    text = report_file[1]
    page = Page(text)
    assert ("html", {"lang": "en"}) in page.tags
    assert {attributes["scope"] for tag, attributes in page.tags if tag == "th"} == {"col", "row"}
    tags = [tag for tag, _ in page.tags]
    assert tags.count("table") == tags.count("caption") == tags.count("thead") == 2
    assert tags.count("h1") == tags.count("main") == tags.count("title") == 1
    assert "<script" not in text
    for _, attributes in page.tags:
        assert not {"href", "srcset", "action", "onload"} & attributes.keys()
        assert attributes.get("src", "data:").startswith("data:")
    assert not re.search(r"http|url\(|@import", re.sub(r'http-equiv|base64,[^"]*', "", text))
    for image in page.images:
        drawing = base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,")).decode()
        nodes = ElementTree.fromstring(drawing).iter()
        links = [value for node in nodes for key, value in node.items() if "href" in key]
        assert all(value.startswith("#") for value in links)


def test_equal_input_gives_equal_files(linear, report_file, tmp_path):
    pages.write_report(load_copy(linear, tmp_path), X, Y, tmp_path / "again.html", **REPORT_OPTIONS)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == report_file[1]


class TestData:
    def test_other_data_are_detected(self, linear, tmp_path):
        others = np.where(np.arange(40) < 3, "perhaps", Y[:40])
        recheck, page = write_and_parse(tmp_path, linear, X[:40], others)
        assert recheck.outcome is pages.Outcome.OTHER_DATA
        assert recheck.certificate is linear.certificate_
        assert "Other data — these are not the data that the model was fitted to" in page.text
        assert "Proof rechecked" not in page.text
        right = int(np.sum(linear.predict(X[:40]) == others))
        assert f"({right} of 40 rows); 3 rows have labels that the model does not know" in page.text
        assert len(page.tables) == 1  # features
        assert len(page.images) == 2
        assert not any("support vectors" in image["alt"] for image in page.images)

    def test_sample_and_class_weights_are_part_of_the_data(self, tmp_path):
        weights = np.linspace(0.2, 2.0, 60)
        model = MaxMarginClassifier(loss="hinge", class_weight={"yes": 3.0, "no": 0.5}, C=0.1, random_state=0)
        model.fit(X, Y, sample_weight=weights)
        _, page = write_and_parse(tmp_path, model, X, Y, sample_weight=weights, top=60)
        for row, label, dual, capped, *_ in page.tables[0][1:]:
            cap = 0.1 * weights[int(row) - 1] * (3.0 if label == "yes" else 0.5)
            assert (float(dual) > cap * (1.0 - 1e-5)) == (capped == "yes")
        assert write_and_parse(tmp_path, model, X, Y)[0].outcome is pages.Outcome.OTHER_DATA


class TestModels:
    @pytest.mark.parametrize("scheme", ["ovr", "ovo"])
    def test_multiclass_kernel_report_has_a_table_per_problem(self, scheme, tmp_path):
        model = KernelMaxMarginClassifier(multi_class=scheme).fit(X, THREE_CLASSES)
        recheck, page = write_and_parse(tmp_path, model, X, THREE_CLASSES)
        assert recheck.outcome is pages.Outcome.HOLDS
        names = {"ovr": [f"{k} against the rest:" for k in range(3)]}
        names["ovo"] = [f"{i} against {j}:" for i, j in ((0, 1), (0, 2), (1, 2))]
        for name, part in zip(names[scheme], recheck.certificate, strict=True):
            assert f"{name} {' '.join(str(part).split())}" in page.text
        for found, part in zip(page.tables, model.certificate_, strict=True):
            assert {int(line[0]) - 1 for line in found[1:]} <= set(part.support.tolist())
        assert len(page.tables) == 3  # none of features

    def test_tables_of_many_classes_are_shortened(self, tmp_path):
        y = np.digitize(X[:, 0], np.quantile(X[:, 0], np.linspace(0, 1, 9)[1:-1]))
        model = MaxMarginClassifier(random_state=0).fit(X, y)
        _, page = write_and_parse(tmp_path, model, X, y, top=1)
        for words in ("Margins of 2 more problems are not drawn", "Rows of 2 more problems are not listed"):
            assert words in page.text
        head, line = page.tables[-1]
        assert head == ["feature", *(f"class {k} against the rest" for k in range(6))]
        coef = model.coef_[:6, int(line[0].split()[1]) - 1]
        assert [float(cell) for cell in line[1:]] == pytest.approx(coef, rel=1e-5)

    def test_inseparable_report_states_the_proof(self, tmp_path):
        model = MaxMarginClassifier(C=np.inf, random_state=0).fit(X, Y)
        recheck, page = write_and_parse(tmp_path, model, X, Y)
        assert recheck.outcome is pages.Outcome.HOLDS
        assert "INSEPARABLE — No surface separates the classes" in page.text
        assert " ".join(model.verdict_.text(1).split()) in page.text
        model.verdict_ = dataclasses.replace(model.verdict_, weights=model.verdict_.weights[::-1])
        assert write_and_parse(tmp_path, model, X, Y)[0].outcome is pages.Outcome.FAILS
        model.fit(X, THREE_CLASSES)
        assert (
            "1 against the rest: not separable" in write_and_parse(tmp_path, model, X, THREE_CLASSES)[1].text
        )

    def test_no_bounds_are_drawn_for_a_margin_that_is_proved_not_to_exist(self, tmp_path):
        model = MaxMarginClassifier(C=np.inf, random_state=0).fit(X[:, :1], Y)
        recheck, page = write_and_parse(tmp_path, model, X[:, :1], Y)
        assert recheck.outcome is pages.Outcome.HOLDS
        assert [("time" in image["alt"]) for image in page.images] == [False]


STREAM = mm.OnlineMarginClassifier(random_state=0).fit(X, Y)


@pytest.mark.parametrize(
    ("model", "rows", "labels", "options", "expected"),
    [
        (STREAM, X, Y, {}, r"about a certificate.*got OnlineMargin"),
        (None, X, Y, {"top": 0}, "top must be a whole number of at least 1; got 0"),
        (None, X[:, :2], Y, {}, "expecting 4 features"),
        (None, X, Y, {"feature_names": ["a"]}, "a name for each of 4 features; got 1"),
        (None, X * [1.0, np.nan, 1.0, 1.0], Y, {}, "column 1 is missing"),
    ],
)
def test_invalid_input_is_refused(linear, tmp_path, model, rows, labels, options, expected):
    with pytest.raises(ValueError, match=expected):
        pages.write_report(model or linear, rows, labels, tmp_path / "report.html", **options)
    with pytest.raises(NotFittedError):
        pages.write_report(MaxMarginClassifier(), X, Y, tmp_path / "report.html")
    with pytest.raises(FileNotFoundError):
        pages.write_report(linear, X, Y, tmp_path / "nowhere" / "report.html")
    assert not list(tmp_path.iterdir())


class TestCommand:
    @pytest.fixture
    def files(self, linear, tmp_path):
        data, model = tmp_path / "train.csv", tmp_path / "m.safetensors"
        lines = [",".join([*map(str, row), y]) for row, y in zip(X, Y, strict=True)]
        data.write_text("\n".join(["a,b,c,d,answer", *lines]) + "\n")
        save(linear, model)
        return data, model, tmp_path / "page.html"

    @staticmethod
    def run(*arguments):
        return command.run("report", *arguments)

    def test_command_writes_the_report(self, files):
        data, model, path = files
        result = self.run(model, data, "-o", path)
        assert result.exit_code == 0
        assert result.stdout.splitlines()[0] == f"report: {path}"
        assert f"verified: recomputed from the 60 rows of {data}" in result.stdout
        assert "Maximum-margin report: train.csv" in Page(path.read_text(encoding="utf-8")).text
        facts = json.loads(self.run(model, data, "-o", path, "--json").stdout)
        assert (facts["outcome"], facts["report"]) == ("HOLDS", str(path))

    @pytest.mark.parametrize(
        ("factors", "tol", "code", "words"),
        [
            ((1.0, 1.0), 1e-3, 0, "not verified: the data are not those of the fit (60 rows then, 29 now)"),
            ((0.9, 1.0), 1e-17, 3, ""),
            ((1.01, 1.02), 1e-3, 2, "the certificate does not hold: the lower bound fails"),
        ],
    )
    def test_command_reports_other_data_and_failing_bounds(self, files, factors, tol, code, words):
        data, model, path = files
        fitted = load(model)
        claim, fitted.tol = fitted.certificate_, tol
        fitted.status_ = mm.Status.MAX_ITER
        lower, upper = factors[0] * claim.lower, factors[1] * (claim.lower if code == 2 else claim.upper)
        fitted.certificate_ = dataclasses.replace(claim, lower=lower, upper=upper)
        save(fitted, model)
        if code == 0:
            data.write_text("\n".join(data.read_text().splitlines()[:30]) + "\n")
        result = self.run(model, data, "-o", path)
        assert (result.exit_code, words in result.stdout) == (code, True)
        page = Page(path.read_text(encoding="utf-8"))
        bad = any(attributes.get("class") == "verdict bad" for _, attributes in page.tags)
        assert bad == ("The proof does not hold" in page.text) == (code == 2)
        assert code == 0 or f"MAX_ITER — {fitted.message_}" in page.text

    def test_command_refuses_invalid_input(self, files, tmp_path, monkeypatch):
        data, model, path = files
        assert "this file is read from" in self.run(model, data, "-o", data).stderr
        (tmp_path / "new.csv").write_text("a,b,c,d\n1,2,3,4\n")
        save(STREAM, tmp_path / "stream")
        for arguments, expected in (
            ((model, tmp_path / "new.csv", "-o", path), "the file has none"),
            ((tmp_path / "stream", data, "-o", path), "the model of a stream has no certificate"),
        ):
            result = self.run(*arguments)
            assert result.exit_code == 2
            assert expected in result.stderr
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # as if it were not installed
        found = self.run(model, data, "-o", path)
        assert (found.exit_code, "Pictures need matplotlib: pip install" in found.stderr) == (2, True)
        assert not path.exists()
