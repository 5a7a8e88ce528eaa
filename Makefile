# make demo   set up what is needed, for the examples too, and run the main job
# make test   every test            make check   lint, types, fast tests
# make bench  the benchmarks        make lock    pin the versions used by CI
# make neighbors NEIGHBOR_QUESTIONS=20000   the search for questions that are not private, with more of them than make test has
# make coverage   the lines that the fast tests reach, with the floor in pyproject.toml
# make versions   Python 3.11 to 3.13, newest and lowest dependencies; VERSIONS='--python python3.12 --newest' tries one
# make bench-compare BASE=<commit>   the speed of this tree against that of a commit
# make which-noise   measure docs/which-noise.md again
PYTHON ?= python3
VENV := .venv
BASE ?= HEAD
VERSIONS ?=
BIN := $(VENV)/bin
LOCK := requirements/ci.txt
DEMO := plot,learn

NEIGHBOR_QUESTIONS ?= 20000

# tests start hundreds of processes, each of which would compile every module again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check neighbors coverage versions lint bench bench-compare which-noise lock clean

$(VENV)/run.stamp: pyproject.toml $(LOCK)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) --editable '.[$(DEMO)]'
	touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) --editable '.[test,dev]'
	touch $@

demo: $(VENV)/run.stamp
	$(BIN)/dither demo

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

neighbors: $(VENV)/dev.stamp
	NEIGHBOR_QUESTIONS=$(NEIGHBOR_QUESTIONS) $(BIN)/python -m pytest -n 2 tests/tables/neighbors

coverage: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" --cov --cov-report=term

versions:
	$(PYTHON) scripts/try_versions.py $(VERSIONS)

bench: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[data]'
	$(BIN)/python benchmarks/run.py --with-peers

bench-compare: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/compare.py $(BASE)

which-noise: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[data]'
	$(BIN)/python benchmarks/which_noise.py

lock: $(VENV)/dev.stamp
	$(BIN)/python -m pip freeze --exclude-editable --exclude dither > $(LOCK)

clean:
	rm -rf $(VENV) .venv-* out .mypy_cache .ruff_cache .pytest_cache .hypothesis
