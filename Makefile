# The whole interface of the project. Every target makes what it needs: virtual environments in .venv, the collection
# under its name in .build.

PYTHON ?= python3
TOOLS := tests/tools

.PHONY: help demo test cases bench lint sanity unit unit-oldest-python unit-all-pythons integration integration-oldest-core \
	molecule guest fuzz packages clean

help:
	@echo 'make demo    move a tree between two inventory hosts on this machine, and look at it (no root)'
	@echo 'make test    all tests; those between hosts need root and Linux'
	@echo 'make cases   which cases of file trees and faults the last tests tried, and which passed'
	@echo 'make bench   every transfer method beside the raw programs, in tables (root and Linux; ARGS="--quick")'
	@echo 'make lint    the checks that read the code'
	@echo 'make clean   remove what these targets made'
	@echo 'Parts of test: lint sanity unit unit-oldest-python integration integration-oldest-core molecule'
	@echo 'Some of a part: make integration ARGS="-k testbed -x"; make molecule ARGS=rsyncd'
	@echo 'More: unit-all-pythons; guest; fuzz (ARGS="bytes 60", "dest 60" or "source 60")'

demo:
	@venv=$$($(PYTHON) $(TOOLS)/venv.py run) && collections=$$($(PYTHON) $(TOOLS)/collection.py link) && \
	PATH="$$venv/bin:$$PATH" ANSIBLE_COLLECTIONS_PATH="$$collections" python scripts/demo $(ARGS)

test: packages
	@$(PYTHON) $(TOOLS)/all_tests.py

cases:
	@venv=$$($(PYTHON) $(TOOLS)/venv.py dev) && "$$venv/bin/python" $(TOOLS)/cases.py

bench: packages
	@$(TOOLS)/bench-programs
	@venv=$$($(PYTHON) $(TOOLS)/venv.py run) && collections=$$($(PYTHON) $(TOOLS)/collection.py link) && \
	PYTHONPATH="$$collections" "$$venv/bin/python" -m ansible_collections.longhaul.fleet.tests.bench.run $(ARGS)

lint:
	@$(PYTHON) $(TOOLS)/lint.py

sanity:
	@$(PYTHON) $(TOOLS)/sanity.py

unit: packages
	@$(PYTHON) $(TOOLS)/pytests.py unit dev -q tests/unit $(ARGS)

unit-oldest-python: packages
	@$(PYTHON) $(TOOLS)/pytests.py pythons

unit-all-pythons: packages
	@$(PYTHON) $(TOOLS)/pytests.py pythons --all

integration: packages
	@$(PYTHON) $(TOOLS)/pytests.py integration dev -v tests/integration $(ARGS)

integration-oldest-core: packages
	@$(PYTHON) $(TOOLS)/pytests.py integration-oldest-core oldest -v tests/integration -m smoke $(ARGS)

molecule: packages
	@$(PYTHON) $(TOOLS)/molecule.py $(ARGS)

# Bonds, which this machine's kernel may lack: in a kernel of its own.
guest: packages
	@$(PYTHON) tests/guest/nic_bond.py

# What reads from the wire, by a fuzzer that looks at which lines it reaches.
fuzz: packages
	@venv=$$($(PYTHON) $(TOOLS)/venv.py fuzz) && collections=$$($(PYTHON) $(TOOLS)/collection.py link) && \
	PYTHONPATH="$$collections" "$$venv/bin/python" -m ansible_collections.longhaul.fleet.tests.fuzz $(ARGS)

packages:
	@$(TOOLS)/system-packages

clean:
	rm -rf .build .cache .venv .ansible .hypothesis .ruff_cache tests/output longhaul-fleet-*.tar.gz
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
