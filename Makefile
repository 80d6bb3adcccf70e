PYTHON ?= python3
.PHONY: benchmark benchmark-full

# The figures of README and docs, and where a page says otherwise.
benchmark:
	$(PYTHON) scripts/benchmark.py

# The same after every long measurement was made anew: hours; transcripts in TRIMTAB_DATA.
benchmark-full:
	$(PYTHON) scripts/benchmark.py --full
