# make demo           explain a model in a light environment of its own (no torch, no tensorflow)
# make test           lint and the whole test suite, in an environment with every framework
# make quick          lint and the tests that matter while editing, under two minutes
# make test-pythons   the core's tests in light environments, on each of Python 3.11, 3.12 and 3.13 that is installed
# make browser        a Chromium for the tests of the HTML report, which are left out without one
# make test-serve     MLServer, KServe, Ray and Spark, with real servers, each in an environment of its own
# make docs           the site; runs every program of its gallery, and fails if one does
# make bench          all benchmarks: our own, and the same models and rows with alibi, DiCE, NICE and treecf, each in an
#                     environment of its own; bench-own and bench-peers are its halves
# make bench-answers  what answers are like, ours and the peers', on held-back rows; goes on where it was stopped
# make bench-breadth  every tool on thirty-four tables and three models of each, read from CFPROTO_DATA; goes on likewise
# make bench-paper    the paper's experiments at its size; goes on from what is committed, where each script's --fresh does
#                     not say otherwise; MNIST and Adult are read from CFPROTO_DATA or downloaded
PYTHON ?= python3
ENV := .venv
DEMO_ENV := .venv-demo
PINS := tests/constraints.txt
PAPER := breast_cancer breast_cancer_presets breast_cancer_grid adult adult_iteration independence mnist mnist_encoder mnist_sweep mnist_black_box mnist_comparison
SERVE := mlserver kserve ray spark
INSTALL := -m pip install -q --no-compile -c $(PINS)
PYTEST := $(ENV)/bin/python -m pytest -n 2 --dist loadfile

.PHONY: demo test quick test-pythons test-serve lint browser docs bench bench-own bench-peers bench-answers bench-breadth bench-paper clean

demo: $(DEMO_ENV)/ready
	$(DEMO_ENV)/bin/cfproto demo

test: lint
	$(PYTEST)

quick: lint
	$(PYTEST) -q -m "not slow and not install and not data"

test-pythons:
	$(PYTHON) tests/pythons.py

test-serve: $(SERVE:%=.venv-%/ready)
	for tool in $(SERVE); do .venv-$$tool/bin/python -m pytest tests/serve/test_$$tool.py || exit 1; done

lint: $(ENV)/ready
	$(ENV)/bin/ruff check .
	$(ENV)/bin/ruff format --check .
	$(ENV)/bin/mypy

browser: $(ENV)/ready
	$(ENV)/bin/python tests/report/browser.py || $(ENV)/bin/playwright install --with-deps chromium \
	|| { apt-get update && apt-get install -y --no-install-recommends chromium; }

docs: $(ENV)/ready
	cp docs/mkdocs.yml .mkdocs.yml
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=3 $(ENV)/bin/mkdocs build --strict -f .mkdocs.yml

bench: bench-own bench-peers

bench-own: $(ENV)/ready
	OMP_NUM_THREADS=1 $(ENV)/bin/python benchmarks/run.py

bench-peers: $(ENV)/ready
	$(ENV)/bin/python benchmarks/peers/run.py

bench-answers: $(ENV)/ready
	OMP_NUM_THREADS=1 $(ENV)/bin/python benchmarks/answers/judge.py

bench-breadth: $(ENV)/ready
	$(ENV)/bin/python benchmarks/breadth/breadth.py

bench-paper: $(ENV)/ready
	for part in $(PAPER); do OMP_NUM_THREADS=1 $(ENV)/bin/python benchmarks/paper/$$part.py || exit 1; done

clean:
	rm -rf $(ENV) $(DEMO_ENV) .venv-3.* $(SERVE:%=.venv-%) .venv-peers .cache site build dist cfproto-report.html
	rm -rf docs/generated .mkdocs.yml .mypy_cache .ruff_cache .pytest_cache .hypothesis

# An environment is made anew when its stamp is older than what it was made from. xgboost-cpu is imported as xgboost and
# leaves out 470 MB of GPU libraries.
$(DEMO_ENV)/ready: pyproject.toml $(PINS)
	$(PYTHON) -m venv --clear $(DEMO_ENV)
	$(DEMO_ENV)/bin/python $(INSTALL) -e ".[pandas]"
	touch $@

$(ENV)/ready: pyproject.toml $(PINS)
	$(PYTHON) -m venv --clear $(ENV)
	$(ENV)/bin/python $(INSTALL) -e ".[torch,keras,pandas,parquet,files,mlflow,dask,plots,shap,captum,notebook,docs,test]" xgboost-cpu
	touch $@

# Servers start faster from compiled files.
$(SERVE:%=.venv-%/ready): .venv-%/ready: pyproject.toml tests/serve/constraints-%.txt
	$(PYTHON) -m venv --clear .venv-$*
	.venv-$*/bin/python -m pip install -q -c tests/serve/constraints-$*.txt -e ".[$*,parquet]" xgboost-cpu pytest
	touch $@
