# Two commands do everything, on a machine with Python 3.11 (or later) and pip:
#
#   make demo    rewrite samples/ and show what came out, with each group's epsilon
#   make test    run the tests
#   make paper DATA=tab.jsonl    the comparison of docs/EVALUATION.md; N=20 documents, OUT=paper-output
#   make train-tagger DATA=folder    train the tagger that ships with the package anew
#
# Both make a virtual environment in .venv, install the pinned versions of constraints.txt
# and fetch the embedded models (about 120 MB, once). Settings, as `make demo NAME=value`:
#
#   PYTHON        the interpreter that makes the environment
#   VENV          where the environment lies
#   TORCH_INDEX   one more package index that pip may take torch from. PyTorch's index of CPU
#                 builds saves the gigabytes of CUDA libraries that Linux gets otherwise.

OLD := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
            $$p -c '$(OLD)' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
TORCH_INDEX ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
       $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

.PHONY: demo test paper train-tagger setup clean

demo: setup
	$(BIN)/python scripts/demo.py

test: setup
	$(BIN)/python -m pytest

train-tagger: setup
	@test -d "$(DATA)" || { echo "name the folder of the corpora: make train-tagger DATA=..."; exit 1; }
	$(PIP) -e '.[train]'
	OMP_NUM_THREADS=1 $(BIN)/python scripts/train_tagger.py --data "$(DATA)"

paper: setup
	@test -f "$(DATA)" || { echo "name an annotated corpus: make paper DATA=tab_gold.jsonl [N=20] [OUT=paper-output]"; exit 1; }
	$(BIN)/dpredact eval paper "$(DATA)" --limit $(or $(N),20) --out "$(or $(OUT),paper-output)" $(ARGS)

setup: $(VENV)/.ready
	@$(BIN)/dpredact models fetch

$(VENV)/.ready: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" && "$(PYTHON)" -c '$(OLD)' || { echo "dpredact needs Python 3.11 or later: make $(MAKECMDGOALS) PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[test]'
	@touch $@

clean:
	rm -rf $(VENV) demo-output build dist *.egg-info .pytest_cache .hypothesis
