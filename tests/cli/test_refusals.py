"""Options that would lose a file or change nothing are refused before any work, by the names that are typed."""

import errno
import os
from pathlib import Path

import pytest
from command import refused, run

from maxmargin import ModelFileError, load

SAME_FILE = (
    ("fit data -o w.png --picture w.png", "--output and --picture"),
    ("fit data -o z --memory 1KB --checkpoint ./z", "--output and --checkpoint"),
    ("fit data -o z --memory 1KB --checkpoint link", "--output and --checkpoint"),
    ("fit data -o z --picture p.png --memory 1KB --checkpoint p.png", "--picture and --checkpoint"),
    ("compare data --csv z.png --picture z.png", "--csv and --picture"),
)
UNUSED = {
    "fit data -o out --no-intercept --intercept augmented": "--intercept does not apply with --no-intercept",
    "fit data -o out --no-intercept --intercept-scaling 2": "--intercept-scaling does not apply with --no-intercept",
    "compare data --intercept-scaling 2": "--intercept-scaling applies only with --intercept augmented",
    "fit data -o out --intercept free --intercept-scaling 2": "--intercept-scaling applies only with",
    "fit data -o out --kernel linear --gamma 3": "--gamma is no parameter of --kernel linear",
    "fit data -o out --kernel rbf --degree 5": "--degree is no parameter of --kernel rbf",
    "separate data --kernel cosine --coef0 5": "--coef0 is no parameter of --kernel cosine",
    "separate data --gamma 3": "--gamma applies only with --kernel",
    "separate data --cache-dir folder": "--cache-dir applies only with --memory",
    "fit data -o out --cache-dir folder": "--cache-dir applies only with --memory",
    "fit table.csv -o out --columns=": "--columns names no column",
}


@pytest.fixture
def folder(data, table, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data.rename("data"), table.rename("table.csv"), model.rename("model")
    Path("link").symlink_to("z")
    return tmp_path


@pytest.mark.parametrize(("words", "names"), SAME_FILE)
def test_two_outputs_in_one_file_are_refused(words, names, folder):
    before = set(os.listdir(folder))
    assert f"{names} name the same file; use different files" in refused(words)
    assert set(os.listdir(folder)) == before


@pytest.mark.parametrize(("words", "message"), UNUSED.items())
def test_options_that_change_nothing_are_refused(words, message, folder):
    assert message in refused(words)
    assert not Path("out").exists()


@pytest.mark.parametrize("options", [
    "--intercept augmented --intercept-scaling 2", "--kernel poly --gamma 1 --degree 2 --coef0 1",
    "--C inf --loss hinge",
    "--online --n-features 4 --intercept-scaling 2",
])  # fmt: skip
def test_options_that_go_together_are_not_refused(options, folder):
    assert run(
        f"fit data -o out --max-iter 3 {options}".replace("--max-iter 3 --online", "--online")
    ).exit_code in (0, 3)


@pytest.mark.parametrize(
    "command", ["fit data -o", "predict data data -o", "export data --to json -o", "demo --picture"]
)
def test_an_output_is_a_file_and_no_other_thing(command, folder):
    assert "the sign - stands for standard input; name a file" in refused(f"{command} -")
    assert "names a folder; name a file in it" in refused(f"{command} out.png/")
    assert not Path("-").exists()
    assert not Path("out.png").exists()


def test_a_link_to_itself_is_not_replaced(folder):
    Path("loop").symlink_to("loop")
    assert refused("fit data -o loop") == f"loop: {os.strerror(errno.ELOOP)}"
    assert Path("loop").is_symlink()


TYPED = {
    "select data --n-jobs 0": "--n-jobs must be a whole number of threads, -1 for as many",
    "select data --keep 0": "--keep must be a whole number of at least 1; got 0.",
    "compare data --algorithms foo": "--algorithms takes names separated by commas",
    "compare data --algorithms ,": "--algorithms takes names separated by commas",
    "separate one": "the labels are of one class: give a file with two",
    "separate three": "the labels are of 3 classes: give a file with two",
    "separate data --kernel rbf --p 3": "--p must be 2; got 3.",
    "report out data --top 0": "--top must be a whole number of at least 1; got 0.",
    "fit data -o out --max-time 0": "--max-time must be a positive number of seconds; got 0.0.",
    "fit data -o out --class-weight foo": "--class-weight must be balanced; got 'foo'.",
    "fit data -o out --kernel foo": "'rbf', 'sigmoid'; got 'foo'.",
    "fit data -o out --tol inf": "--tol must be positive and finite",
    "fit large -o out": "is beyond 2^53, where labels are rounded to others",
    "check model others": "label 2 (counted from 1) is 0, no class of the model: give the data of the fit.",
}


def test_messages_name_the_options_that_are_typed(folder):
    for name, labels in (
        ("one", (1, 1)),
        ("three", (1, 2, 3)),
        ("large", (2**53, 2**53 + 1)),
        ("others", (1, 0)),
    ):
        Path(name).write_text("".join(f"{label} 1:{k} 4:1\n" for k, label in enumerate(labels)))
    for words, message in TYPED.items():
        found = refused(words)
        assert message in found, words
        assert "precomputed" not in found


@pytest.mark.parametrize("command", ["fit", "fit --online", "compare", "select"])
def test_a_seed_is_checked_before_the_data_are_read(command, tmp_path):
    printed = run(f"{command} {tmp_path / 'absent'} --seed -1")
    assert printed.exit_code == 2
    assert "'--seed': Input should be greater than or equal to 0" in " ".join(printed.stderr.split())


def test_a_checkpoint_that_is_not_used_is_a_notice(folder):
    printed = run("fit data -o out --checkpoint c").stderr
    assert printed.startswith("maxmargin: --checkpoint is not used")
    assert printed.count("\n") == 1
    assert run("fit data -o out --checkpoint c -q").stderr == ""


def test_a_folder_is_no_model(folder):
    with pytest.raises(ModelFileError, match="this is a folder"):
        load(folder)
