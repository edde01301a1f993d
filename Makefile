# `make run` trains and solves TSP-20 from scratch, `make test` checks everything, `make docs` builds the site. Each sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Pinned to a version whose CPU build plain pip finds; override with TORCH="torch" to take the newest.
TORCH ?= torch==2.13.0

.PHONY: run test lint types docs format install wheel test-wheel clean

run: $(VENV)/.installed
	$(BIN)/gumbeldore demo --folder runs/demo $(if $(FRESH),--fresh)

test: lint types docs $(VENV)/.ray
	$(BIN)/python -m pytest -n 2 --durations=10

# The site, into docs/_build/html: every page, the generated reference, all notebooks executed. A warning is an error.
docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -j auto -b html docs docs/_build/html

CODE := src tests benchmarks examples docs/_ext docs/conf.py docs/notebooks/drawing.py

lint: $(VENV)/.installed
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/codespell
	$(BIN)/python docs/_ext/prose.py

types: $(VENV)/.installed
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

install: $(VENV)/.installed

# The sdist and this machine's wheel, into dist/.
wheel: $(VENV)/.installed
	$(BIN)/python -m build

test-wheel: $(VENV)/.installed
	$(BIN)/python -m pytest -n 0 tests/packaging

# torch comes first and pinned: an open range would take a build with several gigabytes of CUDA libraries.
$(VENV)/.installed: pyproject.toml setup.py $(wildcard src/gumbeldore/*/compiled/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

# Ray is large and `make run` does not need it, but what it does must be tested.
$(VENV)/.ray: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[dev,ray]"
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[dev,docs]"
	touch $@

clean:
	rm -rf $(VENV) runs docs/_build docs/reference/generated
