"""Failed actions made impossible at the decoder."""
