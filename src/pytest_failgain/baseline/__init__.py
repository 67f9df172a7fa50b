"""What was measured before, kept in the user's repository, and the comparison with it."""
