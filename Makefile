# Everything needs Python >= 3.11 and make, nothing else: each target makes the environment it runs in.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export MAXMARGIN_DATA ?= ../shared/data

# files with tests marked `interpreted`: combinations of rules, storages and norms, whose compilation takes minutes
INTERPRETED := tests/engine tests/algorithms tests/estimators/test_online.py

# what meets most of an installed package, where nothing is compiled yet: pages, model files, readers, the command line
DIST_TESTS ?= tests/project/test_package.py tests/project/test_docs.py tests/io tests/estimators/test_scikit_learn.py \
	tests/cli

.PHONY: demo test test-slow test-interpreted test-peers test-sklearn dist test-dist lint format bench bench-benchopt \
	reproduce reproduce-all baselines docs clean

demo: $(VENV)/.ready
	$(BIN)/maxmargin demo

# Linear algebra of two processes with two threads each takes two to ten times as long on two cores. What concerns
# threads is tested by itself.
test: $(VENV)/.ready-dev
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "interpreted and not slow" $(INTERPRETED)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal \
		-m "not slow and not interpreted" --ignore tests/numerics/test_threads.py
	$(BIN)/python -m pytest -m "not slow" tests/numerics/test_threads.py

test-slow: $(VENV)/.ready-dev
	MAXMARGIN_THOROUGH=1 $(BIN)/python -m pytest -m "slow or thorough or interpreted"

# more of what reads compiled code step by step: engine, cutting planes, streams
test-interpreted: $(VENV)/.ready-dev
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m "not slow" \
		tests/engine/test_engine.py tests/algorithms tests/fit/test_streams.py
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m "not slow" tests/estimators/test_online.py -k "TestCounts or TestBounds"

# what is checked against packages that need a C++ compiler to install
test-peers: $(VENV)/.ready-bench
	$(BIN)/python -m pytest -m "not slow" tests/peers

# scikit-learn's own tests on our classes, against the list of differences; writes its part of docs/scikit_learn.md
test-sklearn: $(VENV)/.ready-dev
	$(BIN)/python -m interop.scikit_learn_tests --write

dist: $(VENV)/.ready-dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist

# the wheel in an environment of its own against tests of the unpacked sdist; all of them: make test-dist DIST_TESTS=tests
test-dist: dist
	.ci/test-dist $(BIN)/python $(DIST_TESTS)

lint: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/.ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks --write
	$(BIN)/python -m benchmarks.streaming --write
	$(BIN)/python -m benchmarks.norms --write
	$(BIN)/python -m benchmarks.kernels --write
	$(BIN)/python -m benchmarks.defaults --write
	$(BIN)/python -m benchmarks.harsh --write
	$(BIN)/python -m benchmarks.crossover --write
	$(BIN)/python -m benchmarks.regimes --write
	$(BIN)/python -m benchmarks.floor --write
	$(BIN)/python -m benchmarks.threads --write
	$(BIN)/python -m benchmarks.path --write

bench-benchopt: $(VENV)/.ready-bench
	$(BIN)/benchopt run benchmarks/benchopt -n 5 -r 1 -d Simulated -d "Breast cancer" -o "*[C=1.0]" --no-plot

reproduce: $(VENV)/.ready-dev
	$(BIN)/python -m reproduction --write

reproduce-all: $(VENV)/.ready-dev
	$(BIN)/python -m reproduction --all --write

# the pictures that tests compare with; look at them before they are committed
baselines: $(VENV)/.ready-dev
	$(BIN)/python -W error tests/support/baselines.py

docs: $(VENV)/.ready-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis docs/_build docs/algorithm docs/api docs/gallery

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "maxmargin needs Python >= 3.11; name one: make PYTHON=python3.12 ..."'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot]"
	touch $@

$(VENV)/.ready-dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@ $(VENV)/.ready

$(VENV)/.ready-bench: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,bench]"
	touch $@ $(VENV)/.ready $(VENV)/.ready-dev

$(VENV)/.ready-docs: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@ $(VENV)/.ready
