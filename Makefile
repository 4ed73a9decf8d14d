# Everything a person or a CI machine does with Segue. `make` alone lists the targets.
#
# Rust is built in `release`, in `checked` (optimised, with debug assertions and overflow checks) for the tests of both
# languages, which share it, and in `quick` for the demo, which is compiled in half the time. Lints build nothing, and go by `lints`,
# so that cargo has them and the tests in folders of their own, where neither waits for the other.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Stamps live in the environment they describe and vanish with it.
STAMP  := $(VENV)/stamps
TARGET := $(or $(CARGO_TARGET_DIR),target)

# A fresh rustup installation is not on the path of a shell that was open before it.
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYO3_PYTHON := $(abspath $(BIN)/python)
export VIRTUAL_ENV := $(abspath $(VENV))
export PIP_CONSTRAINT := $(abspath constraints.txt)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1

RUST_SOURCES   := $(shell find crates -name '*.rs' -o -name '*.toml') Cargo.toml Cargo.lock
PYTHON_SOURCES := python tests benches scripts

# Of all packages at once, with whose features `maturin` builds the extension as well (crates/segue-python/Cargo.toml): what is
# compiled for one is there for the other.
CARGO_TEST := cargo test --workspace --profile checked --locked

.PHONY: help demo test test-all mutants digests counters keys rules deny publish-check wheel bench gaps loss-response cmt-peer docs lint fmt build agent clean
.PHONY: system-packages check-format check-rust check-python check-structure check-features lints-and-rust test-rust test-python

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Whoever has the extension of `make build` keeps it.
demo: $(if $(wildcard $(STAMP)/extension),$(STAMP)/extension,$(STAMP)/quick)  ## Set up, build the extension without optimising it as a whole, reproduce a quick version of the SIGMA figures
	$(BIN)/segue reproduce sigma --quick --out report

test: system-packages $(STAMP)/dev lints-and-rust test-python  ## Set up what the tests need; formatting, lints, Rust and Python tests

# Without these words, slow tests are run too.
BUT_SLOW := and not slow

# Ray is large, and only slow tests want it.
test-all: BUT_SLOW :=
test-all: $(STAMP)/ray test  ## The same, and the tests that take long for what they add

# `make mutants SEED=7 MUTANTS="--group tcp --keep-caught"`; an interrupted run is taken up again.
mutants: $(STAMP)/dev  ## Have the tests judge 240 wrong programs, drawn by SEED
	@[ -n "$(SEED)" ] || { echo "make mutants SEED=NUMBER: which mutants to draw"; exit 2; }
	@cargo mutants --version >/dev/null 2>&1 || cargo install cargo-mutants --locked
	$(BIN)/python scripts/mutants.py --seed "$(SEED)" $(MUTANTS)

# `make digests UPDATE=1` writes them anew, where a change of behaviour is meant.
digests: $(STAMP)/dev  ## Compare every packet that SCTP sends, over 1,900 seeds and all scripted tests, with what is on record
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	SEGUE_TRANSCRIPTS=$$folder cargo test --profile checked --locked --package segue-conformance --test conformance --quiet && \
	cargo run --profile checked --locked --package segue-conformance --bin digests -- \
		tests/conformance/digests.txt --tests "$$folder" $(if $(UPDATE),--update)

keys: $(STAMP)/extension  ## Make docs/keys.md anew: every key of a scenario
	$(BIN)/segue keys --markdown > docs/keys.md

counters:  ## Make docs/counters.md anew: what `segue agent status` counts
	$(PYTHON) scripts/counters.py

rules:  ## Make docs/rules.md anew: which section of which RFC is followed in which file, and by which tests
	$(PYTHON) scripts/rules.py

deny:  ## Check licences and sources of all dependencies, and who may depend on what (deny.toml)
	@cargo deny --version >/dev/null 2>&1 || cargo install cargo-deny --locked
	cargo deny --locked check bans licenses sources

publish-check: check-features  ## What goes before `cargo publish --workspace`: documents without a warning, packages that build
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --profile checked --locked --package segue-wire --package segue-proto
	cargo publish --workspace --dry-run --locked --allow-dirty

wheel: $(STAMP)/venv  ## Build the wheel into dist/, laid out by a profile of what it does most (rustup's llvm-tools)
	profile=$$($(BIN)/python scripts/run_profile.py) && RUSTFLAGS="-Cprofile-use=$$profile" CARGO_TARGET_DIR=$(abspath $(TARGET))/profile/use \
		$(BIN)/maturin build --release --locked --out dist

# The first comparison is of what `make wheel` ships, the second of what `cargo build --release` makes.
bench: build  ## Measure the simulator beside ns-2 and ns-3, SCTP beside usrsctp, dcsctp and sctp-proto and the analysis of captures beside tshark and tcptrace, where they are installed, how late the lab is at 100 Mbit/s, and the agent's throughput beside wireguard-go and boringtun, its delay and its memory, and what a flood costs a stream
	cargo build --release --locked --package segue-bench --package segue-live --package segue-lab --package segue-agent
	profile=$$($(BIN)/python scripts/run_profile.py) && RUSTFLAGS="-Cprofile-use=$$profile" cargo build --release --locked \
		--package segue-bench --target-dir $(TARGET)/profile/use
	$(PYTHON) benches/side_by_side.py $(TARGET)/profile/use/release/segue-bench
	$(PYTHON) benches/side_by_side.py $(TARGET)/release/segue-bench
	$(PYTHON) benches/sctp_throughput.py $(TARGET)/release/segue-sctp
	$(PYTHON) benches/in_memory.py
	$(PYTHON) benches/analyze.py $(BIN)/segue
	$(PYTHON) benches/lab_delay.py $(TARGET)/release/segue-lab
	$(PYTHON) benches/agent_throughput.py $(TARGET)/release/segue-agent
	$(PYTHON) benches/agent_flood.py $(TARGET)/release/segue-agent
	$(PYTHON) benches/agent_cost.py $(TARGET)/release/segue-agent

gaps: system-packages  ## Measure how long handovers interrupt a stream, Segue beside usrsctp (root)
	cargo build --release --locked --package segue-live
	SEGUE_SCTP=$(abspath $(TARGET))/release/segue-sctp $(PYTHON) tests/interop/gaps.py

loss-response: system-packages  ## Measure TCP's goodput under random loss, Segue beside the kernel (root; 6 minutes)
	cargo build --release --locked --package segue-lab
	SEGUE_LAB=$(abspath $(TARGET))/release/segue-lab $(PYTHON) tests/interop/loss_response.py

cmt-peer: build  ## Measure multipath transfers beside ns-2's agent, ensembles of both (some 5 minutes)
	$(BIN)/python benches/cmt_beside_ns2.py

docs: build  ## Make the figures and tables that the documents show
	$(BIN)/segue reproduce sigma --out report
	cp report/figures/figure-policy-speed.svg docs/policy-speed.svg
	$(BIN)/segue reproduce ilnp --out report-ilnp
	cp report-ilnp/figures/figure-12.svg docs/ilnp-wan-wan.svg
	cp report-ilnp/tables/figure-settings.csv docs/ilnp-settings.csv
	$(BIN)/python scripts/settings_table.py
	$(BIN)/python scripts/leo_table.py

lint: $(STAMP)/dev check-format check-rust check-python check-structure  ## Formatting and lints only

fmt: $(STAMP)/dev  ## Format Rust and Python
	cargo fmt --all
	$(BIN)/ruff format $(PYTHON_SOURCES)
	$(BIN)/ruff check --fix-only $(PYTHON_SOURCES)

build: $(STAMP)/release  ## Build the extension and the tools in release and install them into .venv

agent:  ## Build segue-agent in release, and its Debian package into dist/
	cargo build --release --locked --package segue-agent
	$(PYTHON) scripts/debian_package.py $(TARGET)/release/segue-agent

clean:  ## Remove everything that was built
	cargo clean
	rm -rf $(VENV) report report-ilnp report-vertical report-cmt report-scale dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Steps of `test`, in its order.

# Lints have one processor busy at a time, and compiling does for much of it.
lints-and-rust:
	@scripts/beside.sh "$(MAKE) test-rust $(STAMP)/checked" "$(MAKE) lint check-features"

system-packages:
	@scripts/system_packages.sh

check-format:
	cargo fmt --all --check
	$(BIN)/ruff format --check $(PYTHON_SOURCES)

check-rust:
	cargo clippy --workspace --all-targets --profile lints --locked -- -D warnings

# Two runs of mypy: two folders of tests have a conftest.py each.
check-python:
	$(BIN)/ruff check $(PYTHON_SOURCES)
	$(BIN)/mypy --strict python tests/python tests/parity benches scripts
	$(BIN)/mypy --strict tests/interop

# How large the parts of the protocol machines are, and what of them is open to others: see scripts/structure.py.
check-structure:
	$(BIN)/python scripts/structure.py

# Every set of the machines of segue-proto that someone may take compiles, without a warning. `host` is all of them, and is
# what everything else here is built with.
FEATURES := "" schema sctp tcp mip6 ilnp nd sigma location sctp,tcp sctp,mip6 sctp,ilnp tcp,mip6 tcp,ilnp mip6,ilnp \
	sctp,tcp,mip6 sctp,tcp,ilnp sctp,mip6,ilnp tcp,mip6,ilnp sctp,tcp,mip6,ilnp sigma,location

check-features:
	@for features in $(FEATURES); do \
		echo "segue-proto with $${features:-nothing}"; \
		cargo clippy --quiet --profile lints --locked --package segue-proto --lib \
			--no-default-features --features "$$features" -- -D warnings || exit 1; \
	done

test-rust:
	$(CARGO_TEST)

# Files of tests in parallel: those with real links wait most of their time. Then those that drive real hosts, beside each other
# and not beside computing; then those that count milliseconds, alone.
test-python:
	$(BIN)/pytest -ra --numprocesses 3 --dist loadfile --durations=15 -m "not alone and not waits $(BUT_SLOW)" tests/python tests/interop tests/parity
	$(BIN)/pytest -ra --numprocesses 4 --dist loadgroup --durations=10 -m "waits and not alone $(BUT_SLOW)" tests/interop
	$(BIN)/pytest -ra --durations=25 -m "alone $(BUT_SLOW)" tests/interop

# The environment: build tools and run-time dependencies, then what the tests need beside them. Both from
# pyproject.toml, at the versions of constraints.txt.

$(STAMP)/venv: pyproject.toml constraints.txt scripts/make_venv.sh scripts/requirements.py
	scripts/make_venv.sh "$(PYTHON)" "$(VENV)"
	$(BIN)/python scripts/requirements.py build run > $(VENV)/requirements.txt
	$(BIN)/pip install --quiet --requirement $(VENV)/requirements.txt
	mkdir -p $(STAMP) && touch $@

$(STAMP)/dev: $(STAMP)/venv
	$(BIN)/python scripts/requirements.py dev > $(VENV)/requirements-dev.txt
	$(BIN)/pip install --quiet --requirement $(VENV)/requirements-dev.txt
	touch $@

$(STAMP)/ray: $(STAMP)/dev
	$(BIN)/python scripts/requirements.py ray > $(VENV)/requirements-ray.txt
	$(BIN)/pip install --quiet --requirement $(VENV)/requirements-ray.txt
	touch $@

# One extension and one set of tools are installed at a time: installing one takes the other's stamp away. Python sources
# are used in place.

# The simulator, which is all that many need.
$(STAMP)/extension: $(STAMP)/venv $(RUST_SOURCES)
	rm -f $(STAMP)/checked $(STAMP)/quick
	$(BIN)/maturin develop --release --locked
	touch $@

$(STAMP)/quick: $(STAMP)/venv $(RUST_SOURCES)
	rm -f $(STAMP)/checked $(STAMP)/extension $(STAMP)/release
	$(BIN)/maturin develop --profile quick --locked
	touch $@

$(STAMP)/release: $(STAMP)/extension
	cargo build --release --locked --package segue-live --package segue-location --package segue-lab --package segue-agent
	install -m 755 $(TARGET)/release/segue-sctp $(TARGET)/release/segue-location $(TARGET)/release/segue-lab $(TARGET)/release/segue-agent $(BIN)
	touch $@

# The tools are those that the Rust tests have.
$(STAMP)/checked: $(STAMP)/venv $(RUST_SOURCES)
	rm -f $(STAMP)/extension $(STAMP)/release $(STAMP)/quick
	$(BIN)/maturin develop --profile checked --locked
	$(CARGO_TEST) --no-run
	install -m 755 $(TARGET)/checked/segue-sctp $(TARGET)/checked/segue-location $(TARGET)/checked/segue-lab $(TARGET)/checked/segue-agent $(BIN)
	touch $@
