PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DOXA_DATA ?= ../shared/data
export DOXA_DATA

.PHONY: test demo lint laws bench clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n 2 --dist worksteal

laws: $(VENV)/.installed
	$(BIN)/pytest tests/laws

demo: $(VENV)/.installed
	$(BIN)/doxa demo

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/step_cost.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
