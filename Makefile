# A newcomer needs only `make demo` and `make test`; each first installs its requirements.
PY := .venv/bin/python
PROJECTS := pyproject.toml packages/firelite/pyproject.toml packages/fireswarm-postgres/pyproject.toml
SETUP := tools/setup.sh tools/find.sh tools/uv.txt
COVERED := $(addprefix fireswarm/,$(addprefix swarm/,board/* records/mailbox.py worker/loop.py worker/upkeep.py) \
	mind/* llm/* capabilities/* processes/*) firelite/*

unexport PYTHONDONTWRITEBYTECODE # the tests start hundreds of processes, and each would compile all modules again

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo demo-pipeline test check types lint docs unit test-all generate format lock some-on-emulator test-emulator chaos hostile bench bench-agent bench-team mutants release clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.ready-run ## Create .venv for the demo

setup-dev: .venv/.ready-dev ## Add the packages for the tests

.venv/.ready-run: requirements-run.lock $(PROJECTS) $(SETUP)
	@sh tools/setup.sh run

.venv/.ready-dev: requirements.lock $(PROJECTS) $(SETUP)
	@sh tools/setup.sh dev

demo: setup ## Run the swarm on this folder and read its report
	@.venv/bin/swarm demo

demo-pipeline: setup ## Make a tested node from the shipped source, with a scripted advisor
	@.venv/bin/swarm pipeline demo

test: check unit some-on-emulator ## Run everything that CI runs

check: setup-dev ## Format, lint, types, import contracts, size gates, drift of generated files, the site
	@$(MAKE) --no-print-directory -j2 --output-sync=target types lint docs

types: setup-dev
	@.venv/bin/pyright --level error

lint: setup-dev
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/lint-imports --no-cache
	@$(PY) tools/gates.py
	@$(PY) tools/generate.py --check
	@.venv/bin/zizmor --quiet --offline --no-progress --persona pedantic --strict-collection --collect all -- .github
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml

docs: setup-dev ## Build the site of the documents into site/, with search offline; warnings are errors
	@$(PY) tools/site.py

PYTEST := .venv/bin/pytest -n 4 --dist worksteal -q

unit: setup-dev ## Run the tests, of the slow ones a part; the core needs 90 % branch coverage
	@rm -f .coverage .coverage.*
	@$(PYTEST) --part --cov --cov-report= --durations=30
	@for part in $(COVERED); do \
		.venv/bin/coverage report --include "*/src/$$part" --format total > /dev/null; \
		printf 'branch coverage of %-36s ' "$$part"; \
		.venv/bin/coverage report --include "*/src/$$part" --fail-under 90 --format total || exit 1; \
	done

test-all: setup-dev ## Run all cases of all tests (an hour on two cores)
	@$(PYTEST) --junitxml=.tools/tests.xml -o junit_family=xunit1

generate: setup-dev ## Write the files generated from the code
	@$(PY) tools/generate.py

format: setup-dev ## Format, and apply automatic lint fixes
	@.venv/bin/ruff check --fix --quiet . || true
	@.venv/bin/ruff format .

lock: ## Resolve the dependencies into both locks
	@sh tools/lock.sh

CONFORMANCE := packages/firelite/tests/conformance

ON_EMULATOR := $(CONFORMANCE) tests/fundamentals tests/integration/test_raw_client.py \
	tests/integration/test_recall_by_meaning.py tests/chaos/test_at_size.py tests/chaos/test_rounds_killed.py

SOME_ON_EMULATOR := $(CONFORMANCE)/differential $(CONFORMANCE)/test_transforms.py \
	tests/fundamentals/test_edits_and_deletes_by_hand.py tests/fundamentals/test_two_versions.py \
	tests/integration/test_raw_client.py tests/integration/test_recall_by_meaning.py tests/chaos/test_at_size.py \
	tests/chaos/test_rounds_killed.py

some-on-emulator: setup-dev # a short part of test-emulator, where Google's emulator is installed
	@if $(PY) tools/emulator.py true; then \
		FIRELITE_CASES=100 $(PY) tools/emulator.py .venv/bin/pytest $(SOME_ON_EMULATOR) -k emulator -q --part -p no:cacheprovider; \
	else echo "no test ran on Google's emulator"; fi

test-emulator: setup-dev ## Conformance, rules, chaos and the demo on Google's emulator (gcloud's component, Java 17, npm)
	@npm ci --prefix tests/rules --no-audit --no-fund --ignore-scripts || echo "npm ci failed: the rules are not tested"
	@.venv/bin/pytest tests/rules -q -p no:cacheprovider
	@$(PY) tools/emulator.py .venv/bin/pytest $(ON_EMULATOR) -k emulator -q -p no:cacheprovider
	@$(PY) tools/emulator.py .venv/bin/swarm demo

chaos: setup-dev ## 10,000 tasks under kills, suspends, failing commits, shifted clocks, edits by hand and two versions (20 minutes)
	@$(PY) -m tests.chaos.at_size $(CHAOS)
	@CRASHES=all .venv/bin/pytest tests -q -p no:cacheprovider -n 2 -k "killed_at_any or crash_at_any or killed_after_any or kill_9"

hostile: setup-dev ## Every attack that docs/explanation/security.md names, and how many were held
	@$(PY) tools/hostile.py

bench: setup-dev .tools/vectors/.ready ## Run every benchmark; each prints one JSON line
	@for file in benchmarks/*_bench.py; do $(PY) -m benchmarks.$$(basename $$file .py) || exit 1; done

bench-agent: setup-dev ## Measure a model on twelve tasks: MODEL=claude-sonnet-5-5, PROVIDER=...; without MODEL, recorded answers
	@$(PY) -m benchmarks.agent_tasks $(if $(MODEL),--model '$(MODEL)') $(if $(PROVIDER),--provider '$(PROVIDER)') $(AGENT_TASKS)

bench-team: setup-dev ## Compare one agent and the swarm on eight objectives: MODEL=claude-sonnet-5-5, PROVIDER=...; without MODEL, recorded answers
	@$(PY) -m benchmarks.team_tasks $(if $(MODEL),--model '$(MODEL)') $(if $(PROVIDER),--provider '$(PROVIDER)') $(TEAM_TASKS)

mutants: setup-dev .tools/mutants/.ready ## Change the code of important rooms, and see what no test notices: ROOM=gate SAMPLE=40 SEED=1
	@$(PY) tools/mutants.py $(ROOM) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

.tools/vectors/.ready: tools/vectors.txt tools/vectors.sh tools/find.sh
	@sh tools/vectors.sh

.tools/mutants/.ready: tools/mutants.txt tools/mutants.sh tools/find.sh
	@sh tools/mutants.sh

RELEASE := test test-all demo demo-pipeline test-emulator hostile chaos bench bench-agent bench-team mutants

release: setup-dev ## Run every target of these that tests or measures: before a release (hours)
	@for target in $(RELEASE); do $(MAKE) --no-print-directory $$target || { echo "$$target failed"; exit 1; }; done

clean: ## Remove everything that make created
	@rm -rf .venv .tools site .pytest_cache .ruff_cache .coverage .coverage.* .hypothesis
