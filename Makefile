# The whole interface of the project. Every target makes what it needs: virtual environments in .venv, the collection
# under its name in .build.

PYTHON ?= python3
TOOLS := tests/tools

.PHONY: help demo check test bench fleet docs lint release sanity unit unit-long unit-oldest-python unit-all-pythons integration integration-long \
	integration-oldest-core molecule guest fuzz soak packages clean

help:
	@echo 'make demo    move a tree between two inventory hosts on this machine, and look at it (no root)'
	@echo 'make check   lint, and the unit tests nearest to what changed, in less than a minute (ARGS=COMMIT: since then)'
	@echo 'make test    what must pass before a change lands; tests between hosts need root and Linux'
	@echo 'make bench   every transfer method beside the raw programs, in tables (root and Linux; ARGS="--quick")'
	@echo 'make fleet   what a pair of hosts costs the control node (root and Linux; ARGS="--pairs 20 --repeat 5")'
	@echo 'make lint    the checks that read the code'
	@echo 'make docs    the HTML site, in .build/docs'
	@echo 'make release the tarball of a release and its checksum, checked (ARGS=VERSION: prepare that version before)'
	@echo 'make clean   remove what these targets made'
	@echo 'Parts of test: lint sanity unit unit-oldest-python integration integration-oldest-core molecule'
	@echo 'Some of a part: make unit ARGS=tests/unit/test_x.py::test_y; make integration ARGS="-k testbed -x"; make molecule ARGS=rsyncd'
	@echo '                make sanity ARGS=--all (what is not released, too)'
	@echo 'make soak    random trees, options and kills, compared with the real rsync (root; ARGS="differential 2000", ARGS=scale, ARGS=hostile)'
	@echo 'More: make molecule ARGS=database (a database in use moves to another Debian); unit-long; integration-long; unit-all-pythons; guest; fuzz (ARGS="bytes 60"; turns, dest, source, sftp, scp, options)'

demo:
	@venv=$$($(PYTHON) $(TOOLS)/venv.py run) && collections=$$($(PYTHON) $(TOOLS)/collection.py link) && \
	PATH="$$venv/bin:$$PATH" ANSIBLE_COLLECTIONS_PATH="$$collections" python scripts/demo $(ARGS)

check: packages
	@$(PYTHON) $(TOOLS)/check.py $(ARGS)

test: packages
	@$(PYTHON) $(TOOLS)/all_tests.py

bench: packages
	@$(TOOLS)/bench-programs
	@venv=$$($(PYTHON) $(TOOLS)/venv.py run) && collections=$$($(PYTHON) $(TOOLS)/collection.py link) && \
	PYTHONPATH="$$collections" "$$venv/bin/python" -m ansible_collections.longhaul.fleet.tests.bench.run $(ARGS)

fleet: packages
	@venv=$$($(PYTHON) $(TOOLS)/venv.py run) && collections=$$($(PYTHON) $(TOOLS)/collection.py link) && \
	PYTHONPATH="$$collections" "$$venv/bin/python" -m ansible_collections.longhaul.fleet.tests.bench.fleet $(ARGS)

docs:
	@$(PYTHON) $(TOOLS)/docs.py

lint:
	@$(PYTHON) $(TOOLS)/lint.py

release:
	@venv=$$($(PYTHON) $(TOOLS)/venv.py dev) && "$$venv/bin/python" $(TOOLS)/release.py $(ARGS)

sanity:
	@$(PYTHON) $(TOOLS)/sanity.py $(ARGS)

unit: packages
	@$(PYTHON) $(TOOLS)/pytests.py unit dev tests/unit -q $(ARGS)

# The tests and variants that test leaves out: whole transfers whose siblings it runs.
unit-long: packages
	@$(PYTHON) $(TOOLS)/pytests.py unit-long dev tests/unit -q $(ARGS)

unit-oldest-python: packages
	@$(PYTHON) $(TOOLS)/pytests.py pythons $(ARGS)

unit-all-pythons: packages
	@$(PYTHON) $(TOOLS)/pytests.py pythons --all $(ARGS)

integration: packages
	@$(PYTHON) $(TOOLS)/pytests.py integration dev tests/integration -v $(ARGS)

# The variants that test leaves out: methods and ends whose siblings it runs.
integration-long: packages
	@$(PYTHON) $(TOOLS)/pytests.py integration-long dev tests/integration -v $(ARGS)

integration-oldest-core: packages
	@$(PYTHON) $(TOOLS)/pytests.py integration-oldest-core oldest tests/integration -v -m smoke $(ARGS)

molecule: packages
	@$(PYTHON) $(TOOLS)/molecule.py $(ARGS)

# Bonds, which this machine's kernel may lack: in a kernel of its own.
guest: packages
	@$(PYTHON) tests/guest/nic_bond.py

# What reads from the wire, by a fuzzer that looks at which lines it reaches.
fuzz: packages
	@venv=$$($(PYTHON) $(TOOLS)/venv.py fuzz) && collections=$$($(PYTHON) $(TOOLS)/collection.py link) && \
	PYTHONPATH="$$collections" "$$venv/bin/python" -m ansible_collections.longhaul.fleet.tests.fuzz $(ARGS)

# Random trees, edits, options and kills, as long as one likes: ARGS="differential 2000", "pairwise", "differential 500
# --user"; --seed replays. "scale" moves five million files, a sparse tebibyte, and over a line that breaks 100 times:
# "scale --only entries --entries 200000". "hostile" attacks as a hostile host; ARGS="hostile --attack backup" picks.
# "filesystems" prints a matrix of file systems and methods. "hooks 40" kills migrations with hooks, and runs them again.
# "predictions 12" compares benchmarks with transfers, on a quiet machine; --busy beside other work, --case TEXT picks.
soak: packages
	@venv=$$($(PYTHON) $(TOOLS)/venv.py dev) && collections=$$($(PYTHON) $(TOOLS)/collection.py link) && \
	PYTHONPATH="$$collections" PYTHONDONTWRITEBYTECODE=1 "$$venv/bin/python" -m ansible_collections.longhaul.fleet.tests.soak $(or $(ARGS),differential 200)

packages:
	@$(TOOLS)/system-packages

clean:
	rm -rf .build .cache .venv .ansible .hypothesis .ruff_cache tests/output longhaul-fleet-*.tar.gz
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
