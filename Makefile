# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test setup clean

# Prefer the CPU build of torch where the package index has it (see constraints.txt).
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

setup: $(VENV)/.ready
	$(BIN)/dpredact models fetch

test: setup
	$(BIN)/python -m pytest
