# Every target sets up what it needs in .venv; the second time that costs nothing.
PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
# TORCH_INDEX=url hands pip a further index, for PyTorch's CPU wheels.
TORCH_INDEX ?=
# Two processes, each with torch (about 400 MB) and a kernel; give `-n 8` where cores and memory allow.
# The cells of one notebook share a kernel, so a file stays in one process.
PYTEST_ARGS ?= -n 2 --dist loadfile
# For example --no-browser, or --allow-root in a container.
LAB_ARGS ?=

.PHONY: demo lab pages test check lint bench notebooks clean links

demo: .venv/ready-run
	.venv/bin/autograd-lab demo

lab: .venv/ready-lab
	.venv/bin/autograd-lab lab learn $(LAB_ARGS)

# The lessons and the demo's recordings for any browser, without Python or a network.
pages: .venv/ready-lab
	.venv/bin/autograd-lab pages pages

test: .venv/ready-test
	.venv/bin/python -m pytest $(PYTEST_ARGS)

check: lint test

lint: .venv/ready-dev
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/pyright --pythonpath .venv/bin/python
	.venv/bin/python notebooks/build.py --check

bench: .venv/ready-bench
	.venv/bin/python -m benchmarks
	.venv/bin/python -m benchmarks.pytrees
	.venv/bin/python -m benchmarks.custom_op
	.venv/bin/python -m benchmarks.stepper_in_lab

notebooks: .venv/ready-test
	.venv/bin/python notebooks/build.py build

# make links ADDRESS=https://github.com/someone/repository
links:
	$(PYTHON) tools/links.py $(ADDRESS)

# Back to a fresh clone; learn/ stays, it holds a learner's answers.
clean:
	rm -rf .venv build dist demo-out pages .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

# .venv/ready-EXTRA is touched once that extra is installed; "run" is the package without extras.
.venv/ready-%: pyproject.toml $(CONSTRAINTS) | .venv/bin/pip
	.venv/bin/python -m pip install $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) \
		-c $(CONSTRAINTS) -e '.$(if $(filter run,$*),,[$*])'
	touch $@

# pip is the last file venv writes: an interrupted set-up starts again.
.venv/bin/pip:
	$(PYTHON) -m venv --clear .venv
