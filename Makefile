# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --constraint constraints.txt

.PHONY: demo test test-wheel lint check bench docs clean

demo: .venv/.core
	$(BIN)/lipcert reproduce moons-demo --output runs/demo --overwrite

test: .venv/.dev
	$(BIN)/pytest -q -n 2

# Builds the wheel and runs it in an empty environment, away from the repo (needs the package index).
test-wheel: .venv/.dev
	$(BIN)/pytest -q -m wheel

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint test test-wheel

bench: .venv/.dev
	$(BIN)/python benchmarks/moons_step.py
	$(BIN)/python benchmarks/certify.py

# The tables of README.md and docs/ come from results/*.json.
docs: .venv/.dev
	$(BIN)/python docs/render.py

.venv/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $@

.venv/.dev: .venv/.core
	$(PIP) --editable '.[dev,attack]'
	touch $@

clean:
	rm -rf .venv dist
