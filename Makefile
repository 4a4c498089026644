# make run    solve every notebook and print the table of results
# make lab    JupyterLab on the notebooks; make lab OPTIONS="--port=9999 --no-browser"
# make test   what CI runs
# make golden draw the pictures that tests keep to be looked at (tests/golden) anew
# make pictures  draw what the executed notebooks (solutions/) show of kernels anew; no GPU needed
# Each makes its own .venv first. PYTHON=python3.12 picks the interpreter.

SHELL    = bash -o pipefail
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
PYTHON  ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(shell $(p) -c \
           'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))
EMULATOR = $(PYTHON) -c "from utils.emulator import build; build.runtime_library(); \
           build.precompile_headers()"
C_FAMILY = git ls-files 'kernels/*.cu' 'kernels/*.cuh' 'solutions/*.cu' 'utils/emulator/*'

# Hundreds of processes import the same: what Python compiles, it keeps.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run lab test golden pictures format sync clean
.DELETE_ON_ERROR:

run: $(STAMP)
	@$(BIN)/workbook run --solutions

lab: $(STAMP)
	@$(BIN)/workbook lab -- $(OPTIONS)

test: $(STAMP)
	@$(BIN)/python -m pytest -n auto --dist loadfile

golden: $(STAMP)
	@$(BIN)/python -m pytest -q tests/diagrams/test_golden.py --renew
	@git status --short tests/golden

pictures: $(STAMP)
	@$(BIN)/python -m utils.notebooks.redraw

format: $(STAMP)
	@$(BIN)/ruff check -q --fix . && $(BIN)/ruff format -q .
	@$(C_FAMILY) | grep -E '\.(cu|cuh|h|hpp|cpp)$$' | xargs -r $(BIN)/clang-format -i

sync: $(STAMP)
	@$(BIN)/workbook sync

clean:  # spares what is the learner's: what was passed, what was replaced, what cells have shown
	@test ! -d build || find build -mindepth 1 -maxdepth 1 ! -name kept ! -name passed ! -name outputs -exec rm -rf {} +
	rm -rf $(VENV) *.egg-info .pytest_cache .ruff_cache .hypothesis

# --no-compile: Python compiles what it imports, and most of these packages nobody ever does. But
# what PyTorch imports late is compiled on all cores: in a box nothing is kept.
# The emulator, which the first cell needs, is compiled meanwhile: that takes no package.
# nvcc comes from PyPI where there is an NVIDIA card and no CUDA toolkit.
$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install it, or say where it is \
	with make PYTHON=/path/to/python3"; exit 2; }
	@command -v "$${CXX:-g++}" >/dev/null || { echo "$${CXX:-g++} is needed: apt install g++, \
	dnf install gcc-c++, or say where it is with CXX=/path/to/g++"; exit 2; }
	@echo "Installing the workbook into $(VENV): a few gigabytes, most of them PyTorch's ..."
	@$(EMULATOR) >/dev/null 2>&1 </dev/null &
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@extras=dev; \
	if nvidia-smi -L >/dev/null 2>&1 && ! command -v nvcc >/dev/null \
	    && ! test -x "$${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; then extras=dev,cuda; fi; \
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --no-compile \
	    -e ".[$$extras]" \
	    -c constraints.txt | sed -un -e 's/^ *\(Downloading\|Using cached\) \(.*)\)$$/  \1 \2/p' \
	    -e 's/^Installing collected.*/  unpacking .../p' -e 's/^Successfully installed.*/  done/p'
	@cd $(VENV)/lib/python*/site-packages && ../../../bin/python -m compileall -qq -j 0 \
	    torch sympy mpmath networkx >/dev/null; true  # a few of their files are templates
	@touch $@
