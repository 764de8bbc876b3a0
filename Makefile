# Twinstream: every step of development is one command. `make` alone lists them.
SHELL := bash
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup demo kafka test nightly soak lint types pages screenshots bench clean

PY := .venv/bin/python

# Options of the demo (make demo FAULT=drop DURATION=60 JSON=1) and of the tests (make test ARGS="-k kafka").
DEMO := $(if $(FAULT),--fault $(FAULT)) $(if $(RATE),--rate $(RATE)) \
        $(if $(DURATION),--duration $(DURATION)) $(if $(JSON),--json)
ARGS ?=
HOURS ?= 1
SETUP_OF_TESTS := $(PY) -m deploy.embedded setup --chromium --helm --prometheus --compiler

help:
	@echo 'make demo     Kafka, Redis, both PySpark versions and the service; Ctrl-C stops everything'
	@echo '              FAULT=drop|duplicate|field|reorder|stall  seeds a bug into the candidate'
	@echo '              RATE=N                                    input events per second'
	@echo '              DURATION=60 JSON=1                        a bounded run whose output is one JSON object'
	@echo '              make reports any failure as 2; for the exact exit code (0 pass, 1 fail, 3 undecided,'
	@echo '              4 the service cannot be reached) run what it calls, after make setup:'
	@echo '              .venv/bin/python -m deploy.demo --fault drop --duration 60 --json'
	@echo 'make kafka    Kafka and Redis alone, empty; it prints their addresses; Ctrl-C stops both'
	@echo 'make test     what each change must pass, in minutes (ARGS="tests/unit -k gate": these tests of any tier)'
	@echo 'make nightly  every test, with more seeds, examples and faults than each change has time for'
	@echo 'make soak     simulated runs with faults of every kind, from seeds that nobody had (HOURS=1)'
	@echo 'make lint     ruff: rules and formatting; import-linter: which way imports go; the links of the documents'
	@echo 'make types    mypy, strict'
	@echo 'make pages    docs/openapi.json, the schema of comparison files and docs/modules.md, from the code'
	@echo 'make screenshots  docs/images, taken of a running service in Chromium'
	@echo 'make bench    Kafka to verdict against a bare loop, on the embedded broker'
	@echo 'make setup    the virtual environment and the jars, which all others set up by themselves'
	@echo 'make clean    remove everything that make has made, the data of runs included'

.venv/.ready: requirements/build.txt requirements/dev.txt pyproject.toml deploy/setup.sh
	@deploy/setup.sh && touch $@

setup: .venv/.ready
	@$(PY) -m deploy.embedded setup

# exec: nothing stands between make and the demo, which ends when the process that started it does.
demo: .venv/.ready
	@exec $(PY) -m deploy.demo $(DEMO)

kafka: .venv/.ready
	@exec $(PY) -m deploy.embedded run

test: .venv/.ready
	@$(SETUP_OF_TESTS)
	@exec $(PY) -m $(if $(ARGS),pytest $(ARGS),tests.tiers change)

nightly: .venv/.ready
	@$(SETUP_OF_TESTS)
	@exec $(PY) -m tests.tiers nightly

soak: .venv/.ready
	@exec $(PY) -m tests.simulation --soak $(HOURS)

lint: .venv/.ready
	@$(PY) -m ruff check . && $(PY) -m ruff format --check . && .venv/bin/lint-imports && $(PY) -m tests.docs

types: .venv/.ready
	@$(PY) -m mypy

pages: .venv/.ready
	@$(PY) -m twinstream.api.openapi docs/openapi.json
	@$(PY) -m twinstream.spec.file.schema > docs/comparison.schema.json
	@$(PY) -m tests.modules > docs/modules.md

screenshots: .venv/.ready
	@$(PY) -m deploy.embedded setup --chromium
	@exec $(PY) -m tests.support.screenshots

bench: .venv/.ready
	@$(PY) -m deploy.embedded setup
	@exec $(PY) -m loadtest.bench $(ARGS)

clean:
	@rm -rf .venv .cache .demo .bench .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
