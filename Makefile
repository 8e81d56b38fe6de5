# Two commands matter: `make demo` and `make test`. Both set up what they need first.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
JS := tests/js/node_modules/.package-lock.json

.DEFAULT_GOAL := help
.PHONY: help setup parts chromium faketime demo test check unit integration kill kill-core soak soak-core bench-core mutants strangers audit lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: parts chromium faketime ## virtual environment, packages, Kafka's jars, tus-js-client where there is npm, a browser for the tests

parts: $(STAMP) $(JS) # what it takes to run
	@$(BIN)/python -m infra.jars
	@$(BIN)/python -m cauce.bundle tests/js/node_modules/tus-js-client

$(JS): tests/js/package-lock.json
	@if command -v npm > /dev/null; then npm ci --prefix tests/js --silent --no-audit --no-fund; \
		else echo "no npm here: tus-js-client will not be tried"; mkdir -p $(@D); touch $@; fi

$(STAMP): requirements.lock requirements-uv.lock pyproject.toml hatch_build.py queries/plain.c
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Cauce needs Python 3.11 or newer, and $(PYTHON) is older: make PYTHON=python3.12 setup" >&2; exit 2; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

chromium: # for the tests of the page, which say aloud that they are left out where there is none
	@if [ -n "$$CHROMIUM" ] || command -v chromium > /dev/null || command -v chromium-browser > /dev/null || \
		command -v google-chrome > /dev/null; then :; \
		elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
			echo "fetching chromium, to test the page with"; \
			{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends \
				chromium fonts-dejavu-core; } > /dev/null || echo "chromium could not be installed: the page will not be tested"; \
		else echo "no chromium here: the page will not be tested; apt-get install chromium"; fi

faketime: # for the tests of wrong clocks, which say aloud that they are left out where there is none
	@if ls /usr/lib*/faketime/libfaketimeMT.so.1 /usr/lib*/*/faketime/libfaketimeMT.so.1 \
		/usr/local/lib/faketime/libfaketimeMT.so.1 2> /dev/null | grep -q .; then :; \
		elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
			echo "fetching libfaketime, to give processes wrong clocks"; \
			{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends \
				libfaketime; } > /dev/null || echo "libfaketime could not be installed: wrong clocks will not be tried"; \
		else echo "no libfaketime here: wrong clocks will not be tried; apt-get install libfaketime"; fi

demo: parts ## fourteen answers over three datasets, a worker and a gateway killed on the way, a second opinion
	@$(BIN)/python -m infra.demo

test: setup check ## what a landing must pass: check, unit, integration, kill but for what says the same again
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not again and not strangers"

check: $(STAMP) ## ruff and mypy --strict, tests too
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: $(STAMP) ## the fast loop: no broker, no process
	$(BIN)/pytest -m "not kafka and not kill"

integration: setup ## on the embedded Kafka
	$(BIN)/pytest -m "kafka and not kill and not strangers"

kill: setup ## real processes, real signals
	$(BIN)/pytest -m "kill and not strangers"

strangers: setup ## foreign clients, hostile ones and schemathesis against real gateways (minutes)
	$(BIN)/pytest -n 2 --dist loadfile -m strangers

kill-core: setup ## the core's kill tests, RUNS=10 times in a row; stops at the first that fails (an hour)
	@for run in $$(seq $(or $(RUNS),10)); do echo "run $$run"; \
		$(BIN)/pytest -q -n 2 --dist loadfile tests/kill/test_core_*.py tests/kill/test_faust_features.py \
		tests/kill/test_example_orders.py || exit 1; done

soak: setup ## clients on three datasets, kills of everything, every answer checked; FOR=30m SEED=1 (half an hour)
	$(BIN)/cauce soak --for $(or $(FOR),30m) --seed $(or $(SEED),1)

soak-core: setup ## kills of workers and brokers under load until KILLS=200, then the truth (minutes)
	$(BIN)/python -m bench.soak_core --kills $(or $(KILLS),200)

mutants: setup ## break each step of the commit in turn: does a test notice? (minutes)
	$(BIN)/python -m bench.mutants

bench-core: setup ## the core against vanilla Faust and bare librdkafka, as ratios (minutes)
	$(BIN)/python -m bench.core

audit: $(STAMP) ## the pinned packages against the published advisories; needs network access to them
	$(BIN)/uv tool run pip-audit --strict --require-hashes --disable-pip --requirement requirements.lock

lock: ## pin the newest versions that fit pyproject.toml, with hashes
	$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 \
		--custom-compile-command "make lock" --extra dev pyproject.toml -o requirements.lock
	grep -E -A200 '^uv==' requirements.lock | awk 'NR > 1 && /^[a-z]/ { exit } { print }' > requirements-uv.lock

clean: ## remove the virtual environment and every cache in the work tree
	rm -rf tests/js/node_modules .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
