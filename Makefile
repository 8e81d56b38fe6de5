# Two commands matter: `make demo` and `make test`. Both set up what they need first.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
JS := tests/js/node_modules/.package-lock.json

.DEFAULT_GOAL := help
.PHONY: help setup demo test check unit integration kill soak-core bench-core mutants lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) $(JS) ## virtual environment, packages, Kafka's jars, a JavaScript client where there is npm
	@$(BIN)/python -m infra.jars

$(JS): tests/js/package-lock.json
	@if command -v npm > /dev/null; then npm ci --prefix tests/js --silent --no-audit --no-fund; \
		else echo "no npm here: tus-js-client will not be tried"; mkdir -p $(@D); touch $@; fi

$(STAMP): requirements.lock requirements-uv.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Cauce needs Python 3.11 or newer, and $(PYTHON) is older: make PYTHON=python3.12 setup" >&2; exit 2; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

demo: setup ## fourteen answers over three datasets, a worker and a gateway killed on the way, a second opinion
	@$(BIN)/python -m infra.demo

test: setup check ## everything that a landing must pass: check, unit, integration, kill
	$(BIN)/pytest -n 2 --dist loadfile

check: $(STAMP) ## ruff and mypy --strict, tests too
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: $(STAMP) ## the fast loop: no broker, no process
	$(BIN)/pytest -m "not kafka and not kill"

integration: setup ## on the embedded Kafka
	$(BIN)/pytest -m "kafka and not kill"

kill: setup ## real processes, real signals
	$(BIN)/pytest -m kill

soak-core: setup ## kills of workers and brokers under load until KILLS=200, then the truth (minutes)
	$(BIN)/python -m bench.soak_core --kills $(or $(KILLS),200)

mutants: setup ## break each step of the commit in turn: does a test notice? (minutes)
	$(BIN)/python -m bench.mutants

bench-core: setup ## the core against vanilla Faust and bare librdkafka, as ratios (minutes)
	$(BIN)/python -m bench.core

lock: ## pin the newest versions that fit pyproject.toml, with hashes
	$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 \
		--custom-compile-command "make lock" --extra dev pyproject.toml -o requirements.lock
	grep -E -A200 '^uv==' requirements.lock | awk 'NR > 1 && /^[a-z]/ { exit } { print }' > requirements-uv.lock

clean: ## remove the virtual environment and every cache in the work tree
	rm -rf tests/js/node_modules .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
