# Every target sets itself up from a fresh clone: `make demo` and `make test` need nothing before.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
# One set of weights, whatever network there is: the example's baseline belongs to it.
MODEL := smollm2-135m-q4_1

# Threads that wait for each other sleep: spinning ones fight over a busy core. Scoring sees to it
# itself, but tests import torch before that.
export OMP_WAIT_POLICY := PASSIVE

.PHONY: demo test quick lint bench fetch clean

demo: $(READY) fetch  ## Measure an example agent's failure records with a real model.
	cd example_project && ../$(BIN)/python -m pytest --failgain-model $(MODEL)

test: lint fetch  ## Everything that CI checks. A model takes all cores, so it has them to itself.
	$(BIN)/python -m pytest -n auto -m "not model"
	$(BIN)/python -m pytest -m model

quick: $(READY)  ## The tests that need no real model and are not slow: about a minute.
	$(BIN)/python -m pytest -n auto -m "not model and not slow"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY) fetch  ## The figures of speed and memory, as ratios within one run.
	$(BIN)/pip install --quiet -c constraints.txt -r benchmarks/requirements.txt
	$(BIN)/python -m benchmarks

fetch: $(READY)
	$(BIN)/python -m pytest_failgain fetch $(MODEL)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[local,study,dev,gallery]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
