"""Environments in the form of Agent-World: a directory of data files, and Python functions as tools."""
