# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --constraint constraints.txt

.PHONY: demo test test-slow test-device test-browser test-wheel lint check bench bench-growth docs site clean

demo: .venv/.core
	$(BIN)/lipcert reproduce moons-demo --output runs/demo --overwrite

# Each worker begins with one half of the files: what the tests of a file share is then made once.
test: .venv/.dev
	$(BIN)/pytest -q -n 2 --dist worksteal

# What takes long and fails seldom: more kills, processes, attacks, exports.
test-slow: .venv/.dev
	$(BIN)/pytest -q -n 2 --dist worksteal -m "slow and not device"

# Everything once more on a device where a stray CPU tensor fails. It changes torch for the whole process.
test-device: .venv/.dev
	$(BIN)/pytest -q -m device

# Pages in a real Chromium; without one (Debian: apt-get install chromium) it fails.
test-browser: .venv/.browser
	$(BIN)/pytest -q -m browser

# Builds the wheel and runs it in an empty environment, away from the repo (needs the package index).
test-wheel: .venv/.dev
	$(BIN)/pytest -q -m wheel

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint test test-slow test-device site test-browser test-wheel

# Ratios of times, for docs/benchmarks.md: about 35 minutes of an idle machine.
bench: .venv/.dev
	for name in startup moons_step step stack certify proof_times; do $(BIN)/python benchmarks/$$name.py || exit 1; done
	$(BIN)/python docs/render.py

# Step time and memory against the size of everything: about 6 minutes.
bench-growth: .venv/.dev
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python docs/render.py

# The tables of README.md and docs/ come from results/*.json.
docs: .venv/.dev
	$(BIN)/python docs/render.py

# The pages, into site/; a warning is an error, and so is a table that differs from results/.
site: .venv/.dev
	$(BIN)/python docs/render.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.venv/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $@

.venv/.dev: .venv/.core
	$(PIP) --editable '.[dev,attack,docs,explore,hub,onnx,ray,report]'
	touch $@

.venv/.browser: .venv/.dev
	$(PIP) --editable '.[browser]'
	touch $@

clean:
	rm -rf .venv dist site
