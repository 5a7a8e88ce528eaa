# make demo   set up what is needed, for the examples too, and run the main job
# make test   every test            make check   lint, types, fast tests
# make bench  the benchmarks        make lock    pin the versions used by CI
# make serve-demo   the server on the demo's table, with people to sign in as
# make browser   Chromium for the tests of pages, where apt is there; elsewhere what to install
# make nginx     nginx for the test of deploy/nginx.conf, likewise
# make audit  the dependencies against the advisory database, which needs a network; make check has a list of its own
# make neighbors NEIGHBOR_QUESTIONS=20000   the search for questions that are not private, with more of them than make test has
# make differential DIFFERENTIAL_QUESTIONS=20000   random SQL, noise removed, against DuckDB on the raw rows
# make mutants   plant the defects of scripts/mutants.toml one at a time; a test has to catch each
# make coverage   the lines that the fast tests reach, with the floor in pyproject.toml
# make versions   Python 3.11 to 3.13, newest and lowest dependencies; VERSIONS='--python python3.12 --newest' tries one
# make bench-compare BASE=<commit>   the speed of this tree against that of a commit
# make which-noise   measure docs/which-noise.md again
# make docs   the site, in out/docs: open out/docs/index.html
PYTHON ?= python3
VENV := .venv
BASE ?= HEAD
VERSIONS ?=
BIN := $(VENV)/bin
UPGRADE ?=
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11.0 --generate-hashes --no-emit-index-url --no-header --no-annotate

NEIGHBOR_QUESTIONS ?= 20000
DIFFERENTIAL_QUESTIONS ?= 20000

# tests start hundreds of processes, each of which would compile every module again
unexport PYTHONDONTWRITEBYTECODE

DOCS := out/docs

.PHONY: browser nginx demo docs serve-demo test check audit neighbors differential mutants coverage versions lint bench bench-compare which-noise lock clean

# the lock is complete, so nothing is resolved: a version published after the lock must not matter
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement

$(VENV)/run.stamp: pyproject.toml requirements/run.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) requirements/run.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements/ci.txt
	$(INSTALL) requirements/ci.txt
	touch $@

$(VENV)/docs.stamp: $(VENV)/run.stamp requirements/docs.txt
	$(INSTALL) requirements/docs.txt
	touch $@

demo: $(VENV)/run.stamp
	$(BIN)/dither demo

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint browser nginx
	$(BIN)/python scripts/audit_dependencies.py
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test: lint browser nginx
	$(BIN)/python -m pytest -n 2 --dist worksteal

browser:
	sh scripts/install_browser.sh

nginx: $(VENV)/run.stamp
	sh scripts/install_nginx.sh $(VENV)/nginx

audit: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python scripts/audit_dependencies.py --online

serve-demo: $(VENV)/run.stamp
	$(BIN)/python scripts/serve_demo.py

neighbors: $(VENV)/dev.stamp
	NEIGHBOR_QUESTIONS=$(NEIGHBOR_QUESTIONS) $(BIN)/python -m pytest -n 2 tests/tables/neighbors

differential: $(VENV)/dev.stamp
	DIFFERENTIAL_QUESTIONS=$(DIFFERENTIAL_QUESTIONS) $(BIN)/python -m pytest -n 2 tests/tables/differential

mutants: $(VENV)/dev.stamp
	$(BIN)/python scripts/mutants.py

coverage: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" --cov --cov-report=term

versions:
	$(PYTHON) scripts/try_versions.py $(VERSIONS)

bench: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[data]'
	$(BIN)/python benchmarks/run.py --with-peers

bench-compare: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/compare.py $(BASE)

docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going --builder html docs $(DOCS)
	PYTHONPATH=docs $(BIN)/python -m site_builder.links $(DOCS)

which-noise: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[data]'
	$(BIN)/python benchmarks/which_noise.py

# ci.txt is resolved first; the smaller locks take its versions
lock:
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) $(UPGRADE) --extra dev --output-file requirements/ci.txt pyproject.toml
	$(COMPILE) --constraint requirements/ci.txt --extra plot --extra learn --extra server --output-file requirements/run.txt pyproject.toml
	$(COMPILE) --constraint requirements/ci.txt --extra plot --extra learn --extra server --extra docs --output-file requirements/docs.txt pyproject.toml
	$(COMPILE) --constraint requirements/ci.txt --extra server --extra postgresql --output-file requirements/server.txt pyproject.toml

clean:
	rm -rf $(VENV) .venv-* out .mypy_cache .ruff_cache .pytest_cache .hypothesis
