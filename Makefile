# lunscope: `make run` starts it, `make test` proves it, `make bench` measures it.
# Needs Python >= 3.11 and cargo; everything else goes into .venv.

# A distribution's Python is built with profile-guided optimisation, one that pyenv built is not unless asked to:
# screens and tests then take a fifth more CPU time. So the distribution's comes first where it can make a venv.
CAN_MAKE_A_VENV := import ensurepip, sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell /usr/bin/python3 -c '$(CAN_MAKE_A_VENV)' 2>/dev/null && echo /usr/bin/python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
CRATE := engine/native
RUST_SOURCES := $(shell find $(CRATE)/src -name '*.rs') $(CRATE)/Cargo.toml $(CRATE)/Cargo.lock $(wildcard $(CRATE)/bpf/*.bpf.o)
export MATURIN_NO_INSTALL_RUST := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without .pyc files each of the many processes that the tests start compiles everything: a second instead of a third.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help build dev run test test-fast test-rust truth fuzz lab-test oracles lint lint-python lint-rust format audit wheel bench pictures soak bpf bpf-accept clean snapshots

help: ## list what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

build: $(VENV)/.built ## make .venv and build the native core

dev: $(VENV)/.dev ## the same with the tools for testing

$(VENV)/.tools:
	@command -v $(PYTHON) >/dev/null || { echo "lunscope: $(PYTHON) not found: install Python 3.11 or newer, or name it: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lunscope: $$($(PYTHON) --version) is too old: install Python 3.11 or newer, or name it: make PYTHON=python3.12" >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "lunscope: cargo not found: install Rust 1.85 or newer (https://rustup.rs or your distribution's rust package)" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "lunscope: cc not found: install a C compiler (gcc); Rust links with it" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "lunscope: this Python cannot make a venv: install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.built: $(VENV)/.tools pyproject.toml $(RUST_SOURCES)
	$(BIN)/pip install -q -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.built requirements-dev.txt
	$(BIN)/pip install -q -r requirements-dev.txt
	@touch $@

run: build ## build and start: the TUI on a terminal, a bounded run with a summary otherwise
	@$(BIN)/lunscope run

# Two at a time: mypy and the linker use one core each.
TWO_AT_A_TIME := @$(MAKE) --no-print-directory -j2 --output-sync=target

lint: dev ## ruff, mypy --strict, import-linter, stubtest, rustfmt, clippy
	$(TWO_AT_A_TIME) lint-python lint-rust

lint-python: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m mypy.stubtest engine._native

lint-rust:
	cargo fmt --manifest-path $(CRATE)/Cargo.toml --check
	cargo clippy -q --manifest-path $(CRATE)/Cargo.toml --all-targets -- -D warnings

test-rust:
	cargo test -q --lib --manifest-path $(CRATE)/Cargo.toml

# More workers than cores: tests wait for most of their time, those of screens for frames, those of devices for I/O.
# All folders at once, so that those that compute run beside those that wait. Each worker imports and collects
# everything first, which is 2 s of a core: where few tests wait, fewer workers are faster.
PARALLEL := -n $(shell echo $$((4 * $$(nproc)))) --dist worksteal
COMPUTING := -n $(shell echo $$((2 * $$(nproc)))) --dist worksteal
# A worker for each group of tests that wait: none of them takes a tenth of a core.
WAITING := -n 5 --dist loadgroup
# To collect the other files takes longer than many of the tests do.
MARKED = $(shell grep -rlE --include='test_*.py' 'mark\.$(1)\b' tests/kernel tests/fuzz)

# All workers begin at once: each would compile all test files, with pytest's assertions, which is 15 s of a core.
$(VENV)/.collected: | dev
	@$(BIN)/pytest --collect-only -q > $@.log || { cat $@.log >&2; exit 1; }
	@touch $@

# What fails beside others is run again alone at the end, and listed.
FAILED := $(VENV)/.failed
KEEPING := $(BIN)/python -m pytest -p tests.again --failed-to $(FAILED)

test: dev ## everything: lint, Rust tests, Python tests; what fails beside others is run again alone
	$(TWO_AT_A_TIME) lint-rust lint-python test-rust $(VENV)/.collected
	@rm -f $(FAILED)
	$(KEEPING) $(PARALLEL) -m 'not alone'
	$(KEEPING) $(WAITING) -m 'alone and waits' $(call MARKED,waits)
	$(KEEPING) -m 'alone and not waits' $(call MARKED,alone)
	@$(BIN)/python -m tests.again $(FAILED)

test-fast: dev ## what needs no devices, no terminal and no pictures, in about a minute
	$(BIN)/pytest -q $(COMPUTING) -m 'not slow' tests/unit tests/app

# Four at a time: they wait, but each drives thousands of I/Os per second.
truth: dev ## answers on files of known laws: knees, rates within limits, maxima, comparisons; 10 to 20 minutes, best on an idle host
	LUNSCOPE_TRUTH=1 $(BIN)/pytest -n 4 --dist worksteal --durations=0 tests/truth

fuzz: dev ## hostile sessions, trees, job files and messages, and 500 stacks in use: make fuzz SECONDS=60 SEED=1
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1)

lab-test: dev ## tests against captured hosts and in guests with real multipath; LUNSCOPE_LAB names the lab's folder
	LUNSCOPE_GUEST=1 $(BIN)/pytest tests/lab

oracles: dev ## compare knee, statistics and searched rates with the libraries of requirements-oracles.txt, about 400 MB
	$(BIN)/pip install -q -r requirements-oracles.txt
	$(BIN)/pytest tests/oracles

snapshots: dev ## accept the screens as they are now as the new snapshots
	$(BIN)/pytest tests/app --snapshot-update

pictures: dev ## draw docs/pictures from the recordings in tests/recordings
	$(BIN)/python -m tests.pictures

bench: dev ## measure against the numbers in docs/numbers.md; needs root and fio
	$(BIN)/python -m bench

SOAK_MINUTES ?= 25
SOAK_ENDINGS ?= 50

soak: dev ## SOAK_MINUTES of random keys and resizes with a load, then SOAK_ENDINGS terminals that go away
	$(BIN)/python -m bench.soak --minutes $(SOAK_MINUTES) --endings $(SOAK_ENDINGS)

BPF := $(CRATE)/bpf
BPF_CLANG ?= clang-16
BPF_STRIP ?= llvm-strip-16
# Of the programs on block I/O a build for each form of src/exact/form.rs.
BPF_OBJECTS := lunscope.bpf.o lunscope.raw.bpf.o lunscope.plain.bpf.o lunscope.raw.plain.bpf.o throttle.bpf.o rpc.bpf.o freeze.bpf.o
BPF_BUILT := $(addprefix $(CRATE)/target/,$(BPF_OBJECTS))
$(CRATE)/target/lunscope.raw.bpf.o: BPF_FORM := -DRAW
$(CRATE)/target/lunscope.plain.bpf.o: BPF_FORM := -DWITHOUT_FETCH
$(CRATE)/target/lunscope.raw.plain.bpf.o: BPF_FORM := -DRAW -DWITHOUT_FETCH

.SECONDEXPANSION:
$(BPF_BUILT): $(CRATE)/target/%.bpf.o: $(BPF)/$$(firstword $$(subst ., ,$$*)).bpf.c $(wildcard $(BPF)/*.h)
	@command -v $(BPF_CLANG) >/dev/null || { echo "lunscope: $(BPF_CLANG) not found: apt-get install clang-16 llvm-16 libbpf-dev" >&2; exit 1; }
	@mkdir -p $(@D)
	cd $(BPF) && $(BPF_CLANG) -O2 -g -target bpf -mcpu=v3 -Wall -Werror $(BPF_FORM) \
		-ffile-prefix-map="$(CURDIR)/$(BPF)"=. -c $(<F) -o "$(CURDIR)/$@"
	$(BPF_STRIP) -g $@

bpf: $(BPF_BUILT) ## rebuild the BPF objects (clang 16, libbpf-dev) and compare them with the committed ones
	for object in $(BPF_OBJECTS); do cmp $(CRATE)/target/$$object $(BPF)/$$object || \
		{ echo "lunscope: $$object is not built from these sources: make bpf-accept" >&2; exit 1; }; done

bpf-accept: $(BPF_BUILT) ## commit to the BPF objects built from the sources as they are now
	cp $(BPF_BUILT) $(BPF)

audit: dev ## known vulnerabilities and licences of what lunscope is built from; needs cargo-deny and the network
	@command -v cargo-deny >/dev/null || { echo "lunscope: cargo-deny not found: cargo install --locked cargo-deny" >&2; exit 1; }
	cargo deny --manifest-path $(CRATE)/Cargo.toml check
	$(BIN)/pip install -q -r requirements-audit.txt
	$(BIN)/pip-audit --skip-editable

wheel: $(VENV)/.tools ## build an abi3 manylinux wheel that needs no Rust where it is installed
	$(BIN)/pip install -q 'maturin[zig]>=1.9,<2'
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --zig --compatibility manylinux_2_28 --out dist

format: dev ## format Python and Rust
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cargo fmt --manifest-path $(CRATE)/Cargo.toml

clean: ## remove what was built
	rm -rf $(VENV) $(CRATE)/target dist build engine/_native*.so
