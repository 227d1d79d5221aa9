# Two commands on a machine that has only python3 >= 3.11:  make release   and   make test
# Without make: python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[dev]', then the
# lines below. Making a release needs no model library; the tests bring torch and spaCy.

# Where it is set, every process compiles the package and pytest's plugins again.
unexport PYTHONDONTWRITEBYTECODE

release: .venv/ready   ## build the whole release into dist/counterprior and validate it
	.venv/bin/counterprior build --out dist/counterprior
	.venv/bin/counterprior validate dist/counterprior

test: .venv/dev        ## run the quick tests and the README's examples
	.venv/bin/pytest -n auto --dist worksteal

test-slow: .venv/dev   ## the tests that take a second or more; `.ci/run` runs them too
	.venv/bin/pytest -n auto --dist worksteal -m "slow and not lane"

check: .venv/dev       ## format, lint and type-check
	.venv/bin/ruff format --check . && .venv/bin/ruff check . && .venv/bin/mypy

lanes: .venv/dev       ## what takes minutes, without a network; prints what each lane costs
	.venv/bin/pytest -m "lane and not online"

lanes-online: .venv/dev ## the lanes that fetch packages or ask served models
	.venv/bin/pytest -m online

docs: .venv/docs       ## build the site into build/site, with the references from the code
	.venv/bin/python tools/docs_site.py
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

.venv/ready: pyproject.toml constraints.txt
	python3 -m venv .venv
	.venv/bin/pip install --quiet -c constraints.txt --editable '.[croissant]'
	touch $@

.venv/dev: .venv/ready
	.venv/bin/pip install --quiet -c constraints.txt --editable '.[dev]'
	touch $@

.venv/docs: .venv/ready
	.venv/bin/pip install --quiet -c constraints.txt --editable '.[docs]'
	touch $@

help:                  ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

.PHONY: release test test-slow check lanes lanes-online docs help
