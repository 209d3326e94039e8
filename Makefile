# make demo    train PPO on two ranks, then reload the policy in a new process and evaluate it
# make test    the test suite; PYTEST_ARGS="-k ranks -x" passes options on
# make bench   the benchmarks beside what one would take instead (in .venv-bench, some 3 GB), each figure beside its
#              floor, written to benchmarks/results/; BENCH_ARGS=--quick for a first look, BENCH_ARGS="store ranks" for some
# make types   mypy, the extension's stub, pyright, ruff
# make docs    the documentation as a site in build/site; whatever warns fails
# make wheel   sdist and wheel in build/wheel, tested on the oldest and the newest NumPy outside of the checkout
# make warnings asan valgrind tsan machines
#              the C and Cython with warnings as errors; the tests with a sanitized extension; csrc under memcheck, its
#              threads under ThreadSanitizer, and on other machines: s390x and aarch64 (QEMU), Windows (Wine)
# make freethreaded
#              the tests of the store path and threads on CPython 3.13t, which is built first (FREETHREADED names one)
# make fuzz    fuzz-c: libFuzzer over csrc; fuzz-py: atheris over the readers, buffers and store. From fixed seeds, with
#              FUZZ_C_RUNS and FUZZ_RUNS inputs each
# make coverage
#              lines and branches that the tests run. coverage-c: of csrc, below 95 % fails; coverage-py: of the Python
# make clean   remove what was built, the environment and the demo's run
#
# Everything runs in .venv, made with PYTHON (default python3). Stamps in there remember what is installed: a second
# call is quick, and only what a changed file asks for is done again.

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=
FUZZ_RUNS ?= 5000

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
BUILT_FROM := setup.py pyproject.toml $(wildcard csrc/*.[ch] spinstat/*.pyx spinstat/*.pxi spinstat/*.pxd)
BENCH := .venv-bench

# mpiexec comes with the mpich package and lies in the environment.
export PATH := $(BIN):$(PATH)

.PHONY: demo test bench types docs wheel clean
.PHONY: warnings asan valgrind tsan machines freethreaded fuzz fuzz-c fuzz-py coverage coverage-c coverage-py
.DELETE_ON_ERROR:

demo: $(VENV)/.built
	$(BIN)/python examples/ppo.py --cpu 2 --output_dir runs/demo --sinks tensorboard
	$(BIN)/python examples/ppo.py --evaluate runs/demo
	@printf '\n%s\n' "The learning curve is runs/demo/learning_curve.png. To look at the run in TensorBoard:"
	@printf '    %s\n' "$(VENV)/bin/tensorboard --logdir runs/demo"

test: $(VENV)/.tested-with
	$(BIN)/python -m pytest $(PYTEST_ARGS)

bench: $(BENCH)/.built
	$(BENCH)/bin/python -m benchmarks $(BENCH_ARGS)

types: $(VENV)/.checked-with
	.ci/types

docs: $(VENV)/.checked-with
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel:
	$(PYTHON) .ci/wheel.py

warnings asan: $(VENV)/.tested-with
	PYTHON=$(BIN)/python .ci/$@

valgrind tsan machines freethreaded fuzz-c coverage-c:
	.ci/$@

fuzz: fuzz-c fuzz-py

fuzz-py: $(VENV)/.checked-with
	set -e; cd tests; for name in buffers store files; do \
	    $(BIN)/python -m fuzz $$name --runs $(FUZZ_RUNS) --seed 1; done

coverage: coverage-c coverage-py

coverage-py: $(VENV)/.checked-with
	.ci/coverage $(PYTEST_ARGS)

clean:
	rm -rf $(VENV) $(VENV)-* build dist *.egg-info runs/demo spinstat/*.so spinstat/_core.c
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find spinstat tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("spinstat needs Python 3.11 or newer; \
	$(PYTHON) is %d.%d. Name another one: make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo-with: requirements-demo.txt | $(VENV)/.python
	$(PIP) -r requirements-demo.txt
	touch $@

$(VENV)/.built: $(BUILT_FROM) | $(VENV)/.demo-with
	$(PIP) --editable .
	touch $@

# After .built, never beside it: two pips at once would spoil one environment.
$(VENV)/.tested-with: requirements-test.txt requirements-demo.txt | $(VENV)/.built
	$(PIP) -r requirements-test.txt
	touch $@

# An environment of its own: what is compared asks for other versions than the tests do.
$(BENCH)/.installed: requirements-bench.txt | $(VENV)/.python
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.txt
	touch $@

$(BENCH)/.built: $(BUILT_FROM) $(BENCH)/.installed
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

$(VENV)/.checked-with: requirements-check.txt requirements-test.txt requirements-demo.txt | $(VENV)/.tested-with
	$(PIP) -r requirements-check.txt
	touch $@
