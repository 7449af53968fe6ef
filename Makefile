# Every target builds its own environment in .venv; PYTHON picks the interpreter it is made with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base-installed
DEV := $(VENV)/.dev-installed

.PHONY: run test lint bench bench-kernels fidelity clean
.DEFAULT_GOAL := run

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,kernels]'
	touch $(BASE) $@

run: $(BASE)
	$(BIN)/servetwin run scenarios/quickstart.yaml --out runs/quickstart

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Triton's interpreter and its compiler cannot share a process.
test: lint
	$(BIN)/pytest -n auto
	TRITON_INTERPRET=1 $(BIN)/pytest -n auto tests/kernels

fidelity: $(DEV)
	$(BIN)/python docs/fidelity_report.py

bench: $(BASE)
	$(BIN)/python -m benchmarks

# On a GPU; without one, TRITON_INTERPRET=1 with --toy shows that the script runs.
bench-kernels: $(DEV)
	$(BIN)/python -m benchmarks.kernels --out benchmarks/kernels/results

clean:
	rm -rf $(VENV) runs build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
