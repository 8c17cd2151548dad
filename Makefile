# make run: open the dense sample trace (writes a screenshot where there is no display).
# make test: every check and every quick test, in about two and a half minutes on two quiet processors; make test
# EXTENT=--thorough: the same with slow tests, as CI runs it; make test-all: with every combination in the tests.
# make wheels: packages for Linux, macOS and Windows.
# All do their own set-up, in .venv, from pinned versions: requirements.lock is what running needs, requirements-dev.lock
# adds what tests and checks need, requirements-wheels.lock the compiler for machines without one.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SAMPLE := sample_traces/dense-4cpu.kev
STAMP  := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
WHEELS_STAMP := $(VENV)/.installed-wheels
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
DOCS_STAMP := $(VENV)/.installed-docs
# Byte code in a folder of its own, where it is kept whatever the environment says: tests start a hundred processes.
PYTEST := QT_QPA_PLATFORM=offscreen PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/.pytest_cache/bytecode \
          $(BIN)/python -m pytest -n 3 --dist worksteal

.PHONY: run test test-all setup lint types layers pytest test-lowest test-newest bench lock docs pictures site man clean wheel wheels

run: $(STAMP)
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ]; then \
	  $(BIN)/satview $(SAMPLE); \
	else \
	  mkdir -p out && $(BIN)/satview $(SAMPLE) --screenshot out/satview.png --size 1600x1000 && \
	  echo "No display here: the picture is in out/satview.png"; \
	fi

# What is quick comes first; then all at once, as mypy and lint-imports use one processor each and not for long.
test: setup lint
	@$(MAKE) --no-print-directory -j3 types layers pytest

test-all:
	@$(MAKE) --no-print-directory test EXTENT=--complete

setup: $(DEV_STAMP)

# The compiler of requirements-wheels.lock, 90 MB of download, comes only where this machine has none. `make run` removes
# it again once the core is built: on disk it is as large as all that running needs. `make test` brings it back.
ZIG_IF_NEEDED = $(BIN)/python tools/build_core.py --has-compiler || $(PIP) -r requirements-wheels.lock
IS_ZIG_HERE = $(BIN)/python -c 'import ziglang' 2>/dev/null
REMOVE_ZIG = if $(IS_ZIG_HERE); then $(BIN)/python -m pip uninstall --quiet --yes --disable-pip-version-check ziglang; fi
$(STAMP): pyproject.toml requirements.lock tools/install_system_packages.sh tools/build_core.py hatch_build.py \
          $(wildcard satview/core/*.[ch])
	sh tools/install_system_packages.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements.lock
	$(ZIG_IF_NEEDED)
	$(PIP) --no-deps --no-build-isolation --editable .
	$(if $(filter run,$(or $(MAKECMDGOALS),run)),$(REMOVE_ZIG))
	@touch $@

$(DEV_STAMP): $(STAMP) requirements-dev.lock
	$(PIP) -r requirements-dev.lock
	$(ZIG_IF_NEEDED)
	@touch $@

$(WHEELS_STAMP): $(STAMP) requirements-wheels.lock
	$(PIP) -r requirements-wheels.lock
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy --strict

layers: setup
	$(BIN)/lint-imports

# How much the tests try (tests/helpers/extent.py): every workload, release and form of events; with EXTENT=--thorough, as
# CI does, every two of them together and the slow tests; with EXTENT=--complete every combination, and ten times the
# random inputs.
pytest: setup
	$(PYTEST) $(EXTENT)

# The lowest and the newest versions that pyproject.toml allows, on each Python of 3.11 to 3.13 that is here.
test-lowest test-newest: setup
	$(BIN)/python tools/test_versions.py $(@:test-%=%)

bench: setup
	$(BIN)/python -m tests.benchmarks

# The package for machines like this one.
wheel: $(STAMP)
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# The packages for all platforms, in dist, each looked into; the one for this machine is installed and run.
wheels: $(WHEELS_STAMP)
	$(BIN)/python -m tools.make_wheels dist

# Pins every package that pyproject.toml asks for, with the hashes of its files. Made on the oldest Python, for all: the
# markers that pip-compile copies would leave Qt and numpy out on the others.
LOCK = $(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --generate-hashes
lock: setup
	$(PIP) pip-tools
	$(LOCK) --extra dev --build-deps-for editable --output-file requirements-dev.lock pyproject.toml
	$(LOCK) --constraint requirements-dev.lock --build-deps-for editable --output-file requirements.lock pyproject.toml
	$(LOCK) --constraint requirements-dev.lock --extra docs --output-file requirements-docs.lock pyproject.toml
	$(LOCK) --constraint requirements-dev.lock --extra wheels --output-file requirements-wheels.lock pyproject.toml
	sed -i -e 's/ ; python_version < "3[.0-9]*"//' requirements*.lock

clean:
	rm -rf $(VENV) .make-state out dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(DOCS_STAMP): requirements-docs.lock $(STAMP)
	$(PIP) -r requirements-docs.lock
	@touch $@

# The manual page, out/satview.1, written from the parsers.
man: setup $(DOCS_STAMP)
	mkdir -p out
	$(BIN)/argparse-manpage --module satview.viewer_command --function whole_parser --prog satview --project-name satview \
	  --version "$$($(BIN)/satview --version | cut -d' ' -f2)" --author "The satview authors" --manual-title "satview" \
	  --description "view, print, filter, check and simulate kernel event traces of QNX Neutrino" --output out/satview.1

# The pictures and tables of the docs, taken by the program itself, and the site in out/site. `make pictures` also takes
# sheets of every kind of trace for a designer to look at, in out/sheets.
docs: setup pictures site

site: setup $(DOCS_STAMP)
	$(BIN)/python tools/write_site.py
	$(BIN)/mkdocs build --quiet

pictures: setup
	$(BIN)/python tools/write_docs.py
	$(BIN)/python tools/draw_structure.py
	$(BIN)/satview $(SAMPLE) --screenshot docs/images/overview.png --size 1400x860 --theme light
	$(BIN)/satview $(SAMPLE) --screenshot docs/images/zoom.png --size 1400x860 --range 1.0s..1.02s --select 28700 --theme light
	mkdir -p out && $(BIN)/satview tracelogger --workload instrumented -w -f out/instrumented.kev
	$(BIN)/satview out/instrumented.kev --screenshot docs/images/lanes-of-events.png --size 1400x1280 --range 19ms..27ms --theme light \
	  --lanes log,user,frequency,idle,functions,guests --labels state,priority,call \
	  --user-events docs/images/user-events.xml
	$(BIN)/satview tracelogger --workload client-server -s 1 -f out/host.kev
	$(BIN)/satview tracelogger --workload automotive -s 0.3 -f out/guest.kev
	$(BIN)/satview together out/host.kev out/guest.kev -o out/both.sataxis --offset guest=200ms
	$(BIN)/satview out/both.sataxis --screenshot docs/images/axis.png --size 1400x700 --theme light
	$(BIN)/satview tracelogger --workload inheritance -s 0.6 -f out/before.kev
	$(BIN)/satview tracelogger --workload inversion -s 0.6 -f out/after.kev
	$(BIN)/satview out/before.kev --compare out/after.kev --range 60ms..180ms --screenshot docs/images/comparing.png \
	  --size 1400x900 --theme light
	$(BIN)/python tools/take_panel_pictures.py
	$(BIN)/python tools/take_sheets.py --docs --folder docs/images
	$(BIN)/satview $(SAMPLE) --screenshot docs/images/zoom-dark.png --size 1400x860 --range 1.0s..1.02s --select 28700 --theme dark
	$(BIN)/python tools/take_sheets.py
	$(BIN)/python tools/take_sheets.py --scale 2
