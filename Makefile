# make run: open the dense sample trace (writes a screenshot where there is no display).
# make test: every check. Both do their own set-up, in .venv, from the pinned versions of requirements.lock.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SAMPLE := sample_traces/dense-4cpu.kev
STAMP  := $(VENV)/.installed

.PHONY: run test setup lint types layers pytest bench lock docs clean wheel

run: setup
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ]; then \
	  $(BIN)/satview $(SAMPLE); \
	else \
	  mkdir -p out && $(BIN)/satview $(SAMPLE) --screenshot out/satview.png --size 1600x1000 && \
	  echo "No display here: the picture is in out/satview.png"; \
	fi

test: setup lint types layers pytest

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock tools/install_system_packages.sh tools/build_core.py hatch_build.py \
          satview/core/passes.c
	sh tools/install_system_packages.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

lint: setup
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy --strict

layers: setup
	$(BIN)/lint-imports

pytest: setup
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest -n 2 --dist loadfile

bench: setup
	$(BIN)/python -m tests.benchmarks

wheel: setup
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# Pins every package that pyproject.toml asks for, development tools included, with the hashes of its files.
lock: setup
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --extra dev --build-deps-for editable --strip-extras --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --generate-hashes --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) out dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The pictures and tables of the docs, taken by the program itself.
docs: setup
	$(BIN)/python tools/write_docs.py
	$(BIN)/satview $(SAMPLE) --screenshot docs/images/overview.png --size 1400x860 --theme light
	$(BIN)/satview $(SAMPLE) --screenshot docs/images/zoom.png --size 1400x860 --range 1.0s..1.02s --select 28700 --theme light
	$(BIN)/python tools/take_panel_pictures.py
	$(BIN)/satview $(SAMPLE) --screenshot docs/images/zoom-dark.png --size 1400x860 --range 1.0s..1.02s --select 28700 --theme dark
