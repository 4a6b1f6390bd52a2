# Everything runs in .venv, which is made on the first call and only brought up to date again
# when pyproject.toml changes. `make PYTHON=python3.12 test` chooses the interpreter.

PYTHON ?= python3
PYTEST_ARGS ?=
MUTATE_ARGS ?=
BENCH_ARGS ?= --save
REAL_ARGS ?= --again
BASE ?=
FIGURES ?=

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -qq

# $(call require_python,INTERPRETER): stop with one clear line unless it is Python 3.11 or newer.
require_python = @$(1) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "skbayes_sgld needs Python 3.11 or newer; $(1) is: $$($(1) --version 2>&1)." >&2; \
	echo "Name another one (after removing $(VENV), if it is there): make PYTHON=python3.11" >&2; \
	exit 1; }

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-maintainer mutate lint format docs docs-test figures pages bench bench-quick soak truth real-data clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.stamp-test ## run the example on the NBA rookies
	@MPLBACKEND=Agg $(PY) examples/nba_rookies.py

test: $(VENV)/.stamp-test ## run the tests and doctests (PYTEST_ARGS="-m slow" for the slow ones)
	@MPLBACKEND=Agg OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
		$(PY) -m pytest -n 2 $(PYTEST_ARGS)

test-maintainer: $(VENV)/.stamp-test ## test what is kept beside the package: pages, examples, benchmarks, release, soak runs
	@MPLBACKEND=Agg OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
		$(PY) -m pytest -n 2 tests/maintainer docs/*.md docs/guide $(PYTEST_ARGS)

mutate: $(VENV)/.stamp-test ## break 240 lines, one at a time, and see whether a test fails (MUTATE_ARGS="sampling --again")
	@nice -n 10 $(PY) -m tests.maintainer.mutation $(MUTATE_ARGS)

soak: $(VENV)/.stamp-test ## generated inputs, faults, broken files and thousands of fits, half an hour
	@printf '%s\n' automatic long_run inputs interrupts precision files divergence | xargs -P2 -I{} \
		env MPLBACKEND=Agg OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m tests.maintainer.soak.{}

lint: $(VENV)/.stamp-test ## check style, formatting and types
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

format: $(VENV)/.stamp-test ## format the code and apply the safe lint fixes
	@$(PY) -m ruff check --fix --exit-zero .
	@$(PY) -m ruff format .

docs: $(VENV)/.stamp-docs ## build the documentation into docs/_build/html
	@$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

docs-test: $(VENV)/.stamp-docs $(VENV)/.stamp-test ## check the built pages: names, links, and in Chromium where there is one
	@$(PY) -m pytest -m docs tests/maintainer

figures: $(VENV)/.stamp-test,finance ## redraw the figures and measure the numbers of the pages, five minutes (FIGURES="plot_cubic optimizers")
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) docs/pages.py --run $(FIGURES)
	@$(PY) -m benchmarks.page
	@$(PY) -m benchmarks.blocks figure

pages: $(VENV)/.stamp-test ## fill the pages with the numbers that were measured last, in seconds
	@$(PY) docs/pages.py
	@$(PY) -m benchmarks.page

bench: $(VENV)/.stamp-bench ## measure every row of the benchmarks, twenty minutes (BENCH_ARGS="nba --rounds 1")
	@$(PY) -m benchmarks $(BENCH_ARGS); status=$$?; $(PY) -m benchmarks.page; exit $$status

bench-quick: $(VENV)/.stamp-test ## what became slower since another commit, two minutes (BASE=main)
	@$(PY) -m benchmarks.quick --base "$(BASE)"

truth: $(VENV)/.stamp-test ## compare the default settings with independent references
	@MPLBACKEND=Agg $(PY) -m pytest -m truth tests/references tests/calibration -s

real-data: $(VENV)/.stamp-test ## measure coverage on real data sets, half an hour (REAL_ARGS="engel iris" for some, REAL_ARGS= for the missing)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 nice -n 10 $(PY) -m benchmarks.real_data $(REAL_ARGS)
	@$(PY) docs/pages.py --run real_data

clean: ## remove what was built and cached (not .venv)
	@rm -rf build dist docs/_build docs/api/generated docs/auto_examples .mypy_cache .pytest_cache .ruff_cache
	@find . -path ./$(VENV) -prune -o -type d -name __pycache__ -exec rm -rf {} +

# An environment whose interpreter has gone (an upgraded system, a moved disk) is made anew.
ifneq ($(shell test -e $(PY) && echo yes),yes)
$(shell rm -f $(VENV)/.stamp-*)
endif

$(PY):
	$(call require_python,$(PYTHON))
	@echo "Setting up $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.stamp-%: pyproject.toml $(PY)
	$(call require_python,$(PY))
	@echo "Installing skbayes_sgld[$*] into $(VENV)"
	@$(PIP) install -e ".[$*]"
	@touch $@
