# Everything happens in .venv, which the first target that needs it makes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.made
export TF_CPP_MIN_LOG_LEVEL ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Python may keep what it compiled: tests start many processes.
export PYTHONDONTWRITEBYTECODE =
PYTEST := $(BIN)/python -m pytest -q --durations=15

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-parallel test-measures test-repeats check unit format zoo \
  bench bench-fit bench-stream exact seeds folklore pictures docs shape clean

help:  ## list these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(STAMPS)-demo  ## set up, run a training that leaks under memfit, leave a report to open
	-$(BIN)/memfit run examples/leaking.py
	@echo && echo "Open this page:" && $(BIN)/memfit report

# Each part runs even if one before it failed, so that one run shows everything.
define run_all
@begun=$$(date +%s); failed=; \
for part in $(1); do \
  $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
done; \
mkdir -p build; \
echo $$(( ($$(date +%s) - begun + 30) / 60 )) > build/test-minutes; \
echo "$@ took $$(cat build/test-minutes) minutes"; \
test -z "$$failed" || { echo "failed:$$failed"; exit 1; }
endef

test: $(STAMPS)-test  ## set up, check the code and run the tests (some 15 minutes on 2 cores)
	$(call run_all,check test-parallel test-measures)

test-long: $(STAMPS)-test  ## the same, and what repeats it at a larger scale: before a release
	$(call run_all,check test-parallel test-measures test-repeats)

test-parallel: $(STAMPS)-test
	$(PYTEST) -n 2 -m "not measures and not long"

test-measures: $(STAMPS)-test
	$(PYTEST) -m "measures and not long"

test-repeats: $(STAMPS)-test
	$(PYTEST) -m long

check: $(STAMPS)-test  ## format, lint and types: the fast part of the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

unit: $(STAMPS)-test  ## only the tests that need no training
	$(PYTEST) -n 2 tests/unit

format: $(STAMPS)-test  ## format the code and fix what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

zoo: $(STAMPS)-test  ## run the zoo: scripts with a known fault and their twins, some 30 minutes
	$(BIN)/python tests/zoo/judge.py --fix

bench: $(STAMPS)-bench  ## measure what memfit costs, beside memray and scalene (some 20 minutes)
	$(BIN)/python benchmarks/overhead.py

bench-fit: $(STAMPS)-test  ## measure how memfit makes trainings fit, beside plain Keras (some 75 minutes)
	$(BIN)/python benchmarks/fit.py

bench-stream: $(STAMPS)-bench-stream  ## measure streams from disk, beside other loaders (some 15 minutes)
	$(BIN)/python benchmarks/stream.py

folklore: $(STAMPS)-test  ## measure what common remedies do to memory (some 8 minutes)
	$(BIN)/python benchmarks/folklore.py

pictures: $(STAMPS)-test  ## run trainings under memfit and draw the pictures of README and docs
	$(BIN)/python tools/pictures.py

docs: $(STAMPS)-docs  ## build the site into build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open build/site/index.html; with search: python3 -m http.server -d build/site"

exact: $(STAMPS)-test  ## count in which cases micro-batches are exact, and in which refused (some 20 minutes)
	$(BIN)/python benchmarks/exact.py --page=docs/fitting.md

seeds: $(STAMPS)-test  ## run the documents' examples, as given, by hand and with memfit (under 20 minutes)
	$(BIN)/python benchmarks/seeds.py --page=docs/seeds.md
shape:  ## print the figures of the source tree: folders, fan-out, names
	$(PYTHON) tools/shape.py

clean:  ## remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

$(STAMPS)-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group $*
	touch $@
