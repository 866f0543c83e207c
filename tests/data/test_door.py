"""Rows and costs: certified within the domain, refused beyond; columns far from zero keep the digits of centred."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from clouds import assert_optimum_is_bracketed, clouds
from tables import stored

import maxmargin as mm
from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier, Status, verify

X, Y = clouds(60, 4)
LOSSES = ("hinge", "squared_hinge")


def with_entry(value, row=7, column=1):
    rows = X.copy()
    rows[row, column] = value
    return rows


def on_disk(folder, rows):
    files = stored(folder / "a.parquet", rows, np.tile(Y, 50))
    return MaxMarginClassifier(memory="20KB", random_state=0), files


def many(rows):
    return np.tile(rows, (50, 1))


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix, sp.csc_array, pd.DataFrame])
@pytest.mark.parametrize("model", [MaxMarginClassifier(), OnlineMarginClassifier(random_state=0)])
def test_entries_beyond_the_domain_are_named_with_a_remedy(model, store):
    with pytest.raises(ValueError, match=r"column 1, row 7 .counted from 0. of X holds -2e.*fill it in if"):
        model.fit(store(with_entry(-2e50)), Y)
    model.fit(store(with_entry(-1e24)), Y)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_tables_of_tiny_numbers_are_refused(store):
    with pytest.raises(ValueError, match=r"longest row of X has the length .*e-5\d.*multiply all columns"):
        MaxMarginClassifier().fit(store(X * 1e-52), Y)
    with pytest.raises(ValueError, match=r"Kernel values reach .*e-10\d"):
        KernelMaxMarginClassifier(kernel="linear").fit(store(X * 1e-52), Y)


def test_kernels_and_named_columns_are_refused_with_the_same_words():
    with pytest.raises(ValueError, match=r"column 1, row 7 .* holds 2e\+50"):
        KernelMaxMarginClassifier().fit(with_entry(2e50), Y)
    with pytest.raises(ValueError, match=r"column 'b', row 7 .* holds 1e\+308"):
        MaxMarginClassifier().fit(pd.DataFrame(with_entry(1e308), columns=list("abcd")), Y)
    with pytest.raises(ValueError, match=r"Kernel values reach .*e\+.*: scale the features"):
        KernelMaxMarginClassifier(kernel="poly", degree=4, gamma=1.0).fit(X * 1e30, Y)
    with pytest.raises(ValueError, match=r"column 0, row 0 .* holds .*e\+6"):
        KernelMaxMarginClassifier(kernel="precomputed").fit(X @ X.T * 1e60, Y)


def test_files_and_partitions_have_the_same_domain(tmp_path):
    model, files = on_disk(tmp_path, many(with_entry(2e50, row=41)))
    with pytest.raises(ValueError, match=r"row 42 \(counted from 1\).*column 1 holds 2e\+50"):
        model.fit(*files)
    for store in (np.asarray, sp.csr_matrix):
        with pytest.raises(ValueError, match=r"row 41 .*column 1 holds -2e\+50"):
            model.fit(store(many(with_entry(-2e50, row=41))), np.tile(Y, 50))
        with pytest.raises(ValueError, match=r"longest row of X has the length"):
            model.fit(store(many(X * 1e-52)), np.tile(Y, 50))
    model, files = on_disk(tmp_path, many(X * 1e20))
    verify(model.set_params(C=1e-40).fit(*files), *files)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("power", "options"),
    [(-160, {}), (160, {}), (100, {"p": 1.5}), (-100, {"p": np.inf}), (130, {"norm_power": 1})],
)
def test_fits_within_the_domain_do_not_depend_on_the_scale(loss, power, options):
    scale = 2.0**power
    model, same = (
        MaxMarginClassifier(s ** -options.get("norm_power", 2), loss=loss, random_state=0, **options).fit(
            X * s, Y
        )
        for s in (scale, 1.0)
    )
    assert model.status_ is Status.CERTIFIED
    found, lower = verify(model, X * scale, Y), same.certificate_.lower * model.C
    assert lower * (1.0 - 1e-3) <= found.lower <= found.upper <= lower * (1.0 + 3e-3)


@pytest.mark.parametrize("model", [MaxMarginClassifier(), KernelMaxMarginClassifier()])
@pytest.mark.parametrize(("C", "weight"), [(1e-102, 1.0), (1e102, 1.0), (1.0, 1e-102), (1e60, 1e60)])
def test_costs_beyond_the_domain_are_refused(model, C, weight):
    weights = np.where(np.arange(60) == 3, weight, 1.0)
    with pytest.raises(ValueError, match=r"C times the weights of rows reaches .*: change C"):
        type(model)(C).fit(X, Y, weights)


def test_intercepts_beyond_the_domain_are_refused():
    for scaling in (1e51, 1e-51):
        with pytest.raises(ValueError, match=r"intercept_scaling=1e.* must be from"):
            MaxMarginClassifier(intercept_scaling=scaling).fit(X, Y)
        model = MaxMarginClassifier(intercept_scaling=scaling**0.9)
        verify(model.fit(X, Y), X, Y)


# columns far from zero


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("level", [1e3, 1e6, -1e6])
def test_columns_far_from_zero_have_the_digits_of_centred_ones(loss, store, level):
    rows = np.round(X * 2.0**20) / 2.0**20  # shifts are exact
    plain = MaxMarginClassifier(loss=loss, random_state=0).fit(rows, Y)
    moved = store(rows + np.array([level, 0.0, 0.0, 2.0 * level]))
    model = MaxMarginClassifier(loss=loss, random_state=0).fit(moved, Y)
    assert verify(model, moved, Y).gap <= 1e-8
    assert model.certificate_.lower == pytest.approx(plain.certificate_.lower, rel=1e-9, abs=0.0)
    assert_optimum_is_bracketed(model, moved, Y)
    np.testing.assert_array_equal(model.predict(moved), plain.predict(rows))


@pytest.mark.parametrize("spread", [0.9, 1.1])  # of a hundredth of the level
def test_both_sides_of_the_limit_of_shifts_are_certified(spread):
    rows = X.copy()
    rows[:, 2] = 100.0 + spread * (Y + np.arange(60) / 59.0) / 2.0
    model = MaxMarginClassifier(random_state=0).fit(rows, Y)
    assert_optimum_is_bracketed(model, rows, Y)
    assert model.certificate_.gap <= 1e-9
    rows = rows.astype(np.float32)
    assert_optimum_is_bracketed(model.fit(rows, Y), rows, Y)


@pytest.mark.parametrize("loss", LOSSES)
def test_time_stamps_in_seconds_are_certified(loss):
    times = 1.7e9 + 86400.0 * np.arange(60.0)
    for rows in (np.column_stack([X, times]), np.column_stack([X, 1e3 * times])):
        model = MaxMarginClassifier(loss=loss, random_state=0).fit(rows, Y)
        assert model.status_ is Status.CERTIFIED
        assert_optimum_is_bracketed(model, rows, Y)


@pytest.mark.parametrize("loss", LOSSES)
def test_nanoseconds_and_identifiers_are_certified_or_named(loss):
    rng = np.random.default_rng(0)
    stamps, numbers = 1.7e18 + 1e9 * np.arange(60), rng.integers(2**62, size=60).astype(float)
    for column in (stamps, numbers):
        rows = np.column_stack([X, column])
        for C in (1e-3, 1.0, 1e3):
            model = MaxMarginClassifier(C, loss=loss, random_state=0).fit(rows, Y)
            assert model.status_ is Status.CERTIFIED or (
                model.status_ is Status.STALLED and "Column 4 (counted from 0) reaches" in model.message_
            )
            assert_optimum_is_bracketed(model, rows, Y)


def test_shifted_fits_keep_warm_starts_classes_and_weights():
    rows, y = X + 1e5, np.arange(60) % 3
    weights = np.where(np.arange(60) < 5, 0.0, 1.0)
    model = MaxMarginClassifier(random_state=0, warm_start=True).fit(rows, y, weights)
    assert verify(model, rows, y, weights).gap <= 1e-6
    assert verify(model.fit(rows, y, weights), rows, y, weights).gap <= 1e-3
    assert mm.margin_path(rows, Y, Cs=3, random_state=0).gaps_.max() <= 1e-3
