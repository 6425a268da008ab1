# Every target sets up what it needs in .venv, once, and again when a requirement changes.
PYTHON ?= python3
BIN := .venv/bin
# `make run ARGS="model=fairall_I_II dataset=credit seeds=3"` runs another command.
ARGS ?= model=fairall_I_II dataset=credit

# `make reproduce WORDS="preset=quick"` adds to every command, `WORDS="dataset=credit"` picks, `JOBS=1` spares a core.
WORDS ?=
JOBS ?=

.PHONY: run test test-all check ui clean reproduce reproduce-tables reproduce-figures reproduce-rivals report leaderboard ablation questions findings worlds docs

run: .venv/installed
	$(BIN)/python -m fairall $(ARGS)

# A worker per core, each with one thread; plain `pytest` runs in one process.
test: MARKS := -m "not whole"
# With kills, the wheel, servers, notebooks and simulations: what CI runs.
test-all: MARKS :=
test test-all: .venv/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(MARKS) -n auto --dist worksteal

check: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/hadolint Dockerfile

ui: .venv/installed
	$(BIN)/mlflow ui --host 127.0.0.1 --backend-store-uri sqlite:///outputs/mlflow.db

# Skips what is finished, goes on where it was interrupted, and ends with outputs/report/index.html.
reproduce: reproduce-tables reproduce-figures

reproduce-tables reproduce-figures: reproduce-%: .venv/installed
	@# A run that fails (1) is missing in the report, which is made all the same; an interruption (130) ends it all.
	$(BIN)/python -m reproduction runs $* $(JOBS:%=--jobs %) $(WORDS) || \
	  { code=$$?; test $$code -ne 1 || $(BIN)/python -m reproduction report $(WORDS); exit $$code; }
	$(BIN)/python -m reproduction report $(WORDS)

report: .venv/installed
	$(BIN)/python -m reproduction report $(WORDS)

# Make the runs that are missing, and fill the tables of the pages of docs/ that have some of them.
BOARD = docs/leaderboard.md docs/leaderboard_tables.md $(wildcard docs/methods/*.md)
leaderboard: .venv/installed
	$(BIN)/python -m reproduction leaderboard $(BOARD:%=--into %) $(JOBS:%=--jobs %) $(WORDS)

ablation: .venv/installed
	$(BIN)/python -m reproduction ablation --into docs/ablation.md $(JOBS:%=--jobs %) $(WORDS)

# What the paper leaves open, twenty replicates each: `make questions WORDS=truth`.
questions: .venv/installed
	$(BIN)/python -m reproduction questions --into docs/questions_$(firstword $(WORDS)).md $(JOBS:%=--jobs %) $(WORDS)

# Of the tables in docs/, after they have changed.
findings: .venv/installed
	$(BIN)/python -m reproduction findings --into docs/findings.md

worlds: .venv/installed
	$(BIN)/python -m reproduction worlds --into docs/worlds_results.md $(JOBS:%=--jobs %) $(WORDS)

# Beside the figures that the authors of other methods print: docs/rivals.md.
reproduce-rivals: .venv/installed
	$(BIN)/python -m reproduction rivals --into docs/rivals.md $(JOBS:%=--jobs %) $(WORDS)

# The documentation site, without a network: site/index.html.
docs: .venv/installed-dev
	@# Without the theme's notice about MkDocs 2, which setup.cfg excludes; --quiet would keep --strict from failing.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Keeps what runs have left; `rm -r outputs/*` is yours to type.
clean:
	rm -rf .venv build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/torch: constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	# On its own first: its exact version is what keeps gigabytes of GPU libraries away.
	@echo 'Installing, 1 of 2: PyTorch, the largest download'
	$(BIN)/pip install -c constraints.txt torch
	touch $@

.venv/installed: .venv/torch setup.cfg pyproject.toml
	@echo 'Installing, 2 of 2: FairAll and the other packages that it needs'
	$(BIN)/pip install -c constraints.txt -e .
	touch $@

.venv/installed-dev: .venv/installed
	@echo 'Installing what tests and documentation need'
	$(BIN)/pip install -c constraints.txt -e '.[dev]'
	touch $@
