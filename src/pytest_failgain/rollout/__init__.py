"""Rollouts: the model chooses actions, the environment runs them, the harness records them."""
