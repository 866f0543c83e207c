# Each target is a task of tasks.py, which needs Python >= 3.11 and makes the environment it runs in.
# Without make, or on Windows: python tasks.py test
PYTHON ?= python3
TASKS := demo test test-slow test-interpreted test-peers test-spark test-sklearn mutations faults fuzz lint format bench bench-benchopt \
	reproduce reproduce-all baselines docs dist test-dist clean

.PHONY: $(TASKS)

$(TASKS):
	$(PYTHON) tasks.py $@ $(ARGUMENTS)
