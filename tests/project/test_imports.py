"""What the import of a classifier loads."""

from __future__ import annotations

from processes import run_python


def test_the_import_of_a_classifier_loads_no_compiler_readers_or_partitions():
    code = "import sys; from maxmargin import MaxMarginClassifier; print(*sys.modules)"
    loaded = run_python("-c", code).split()
    heavy = (
        "numba",
        "maxmargin.readers",
        "maxmargin.data",
        "maxmargin.fit.partitioned",
        "maxmargin.algorithms",
    )
    assert [name for name in loaded if name.startswith(heavy)] == []
    assert "maxmargin.estimators.linear" in loaded
