"""Environments make failure cases from an executable world. One sub-package or module each."""
