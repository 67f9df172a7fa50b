"""Captures what an agent's own harness sends to its model after a failed call."""
