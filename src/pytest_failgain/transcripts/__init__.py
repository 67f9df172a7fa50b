"""Transcripts of real agents: one reader a format, one way from what they say to failure cases."""
