# python3 and make are all that is needed; everything else is installed into .venv.
VENV := .venv
BIN := $(VENV)/bin
# Test files at a time.
JOBS ?= 3
export DAGSTER_HOME ?= $(CURDIR)/.dagster
export RECIPES_PROJECT ?= $(CURDIR)/examples/demo

.PHONY: demo demo-cloud test dev lint install install-demo clean

demo: install-demo  ## draw a small archive, run its recipe, say where the results are
	@$(BIN)/python -m recipes_orchestration.demo_archive examples/demo/pages
	@mkdir -p $(DAGSTER_HOME) && cp dagster.yaml $(DAGSTER_HOME)/dagster.yaml
	@$(BIN)/recipes run letters
	@echo
	@echo "Results:       examples/demo/library (Parquet, one row a page)"
	@echo "As text files: $(BIN)/recipes export letters --step read --format text --out texts"
	@echo "The UI:        make dev     (then open http://localhost:3000)"

demo-cloud: install-cloud  ## batches at a rehearsed provider: deferred, killed with Dagster, adopted
	@test -d examples/demo/pages || $(BIN)/python -m recipes_orchestration.demo_archive examples/demo/pages
	@$(BIN)/python -m recipes_orchestration.commands.demo_cloud examples/cloud

test: install  ## every test, the slow ones too
	$(BIN)/python -m compileall -q recipes_orchestration recipes_orchestration_tests
	$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

dev: install-demo  ## the Dagster UI on port 3000, over the same project
	@mkdir -p $(DAGSTER_HOME) && cp dagster.yaml $(DAGSTER_HOME)/dagster.yaml
	$(BIN)/dagster dev -w workspace.yaml -p 3000

lint: install  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# Packages are compiled as they are installed: Dagster starts many processes, and each would compile
# all it imports by itself where PYTHONDONTWRITEBYTECODE is set.
install: $(VENV)/.dev
install-demo: $(VENV)/.demo
install-cloud: $(VENV)/.cloud

$(BIN)/uv:
	@python3 -c 'import ensurepip, venv' || { echo "python3 has no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.demo $(VENV)/.cloud

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[orchestration,ocr,nlp]'
	@touch $@

$(VENV)/.cloud: pyproject.toml constraints.txt | $(BIN)/uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[anthropic]'
	@touch $@

clean:
	rm -rf $(VENV) .dagster examples/demo/pages examples/demo/library examples/demo/.recipes \
	  examples/cloud/library examples/cloud/.recipes examples/cloud/.dagster
