"""The whole published method on any models and cases: `python -m pytest_failgain study`."""
