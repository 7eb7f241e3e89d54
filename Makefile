# Everything a fresh machine needs: `make demo` and `make test` make the virtual environment themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := demo/report.html
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Two test workers with one thread each are faster than one worker with two; whoever is done takes from the other.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-images demo-text test smoke fuzz lint format docs clean bench-tables

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: $(STAMP)  ## make the virtual environment and install everything into it

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing anyorder and its development set-up into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,docs]"
	@touch $(STAMP)

demo: $(STAMP)  ## fit, ask and fill on data that comes with scikit-learn; writes an HTML report
	@mkdir -p $(dir $(DEMO))
	$(BIN)/anyorder demo -o $(DEMO)
	@echo "The picture: open $(abspath $(DEMO)) in a browser."
	@echo "To play with a model by clicking: $(BIN)/anyorder serve --demo, then open the address that it prints."

demo-images: $(STAMP)  ## the same for pictures: digits with parts hidden, filled; draws a grid
	@mkdir -p $(dir $(DEMO))
	$(BIN)/anyorder demo-images -o $(dir $(DEMO))digits.png
	@echo "The picture: $(abspath $(dir $(DEMO))digits.png)"

demo-text: $(STAMP)  ## the same for text: Python's help pages with holes, filled and coloured
	@mkdir -p $(dir $(DEMO))
	$(BIN)/anyorder demo-text -o $(dir $(DEMO))text.png
	@echo "The picture: $(abspath $(dir $(DEMO))text.png)"

test: $(STAMP)  ## run the tests
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

smoke: $(STAMP)  ## run every benchmark script for a few seconds on generated data, and print the seconds of each
	$(BIN)/python benchmarks/smoke.py

# Other seeds every time, printed, so that what is found can be run again: make fuzz SEED=1234
MINUTES ?= 10
SEED := $(or $(SEED),$(shell date +%s))
ATTACKS := files inputs questions kills soak
fuzz: $(STAMP)  ## attack: damaged files, odd inputs and questions, kills, a long run; MINUTES each, SEED to repeat
	@failed=; for attack in $(ATTACKS); do \
		echo "== $$attack: seed $(SEED), at most $(MINUTES) minutes"; \
		$(BIN)/python benchmarks/reliability/$$attack.py --seed $(SEED) --minutes $(MINUTES) || failed="$$failed $$attack"; \
	done; test -z "$$failed" || { echo "found something:$$failed (seed $(SEED))"; exit 1; }

lint: $(STAMP)  ## style, formatting, types; a warning for long files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@find src -name '*.py' -exec wc -l {} + | awk '$$1 > 400 && $$2 != "total" \
		{print "warning: " $$2 " has " $$1 " lines; is there a second idea in it?"}'

format: $(STAMP)  ## put the code into the house format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

# Resumable: what build/peers holds already is not run again. Needs ANYORDER_DATA, the folder of the tables.
bench-tables: $(STAMP)  ## the imputers people use beside anyorder: one environment each, hours; results and picture
	@test -n "$$ANYORDER_DATA" || { echo "set ANYORDER_DATA to the folder that has the tables"; exit 1; }
	$(BIN)/python benchmarks/peers/run.py --jobs 2 --json benchmarks/results/peers.json
	$(BIN)/python benchmarks/peers/single_columns.py --jobs 2 --json benchmarks/results/single_columns.json
	$(BIN)/python benchmarks/fill_speed.py --json benchmarks/results/fill_speed.json
	$(BIN)/python benchmarks/peers/plot.py

docs: $(STAMP)  ## build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:  ## remove what can be made again, but not the virtual environment
	rm -rf site demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
