PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ifneq ($(wildcard ../shared/data),)
DOXA_DATA ?= ../shared/data
endif
ifdef DOXA_DATA
export DOXA_DATA
endif

.PHONY: test demo lint laws bench docs clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Every process of the tests, and there are many, would compile all of Doxa anew where no bytecode may be kept.
test: lint
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 --dist worksteal

laws: $(VENV)/.installed
	$(BIN)/pytest tests/laws

demo: $(VENV)/.installed
	$(BIN)/doxa demo

bench: $(VENV)/.installed
	$(BIN)/doxa bench all --out results/bench

$(VENV)/.documented: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

docs: $(VENV)/.documented
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo site/index.html

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
