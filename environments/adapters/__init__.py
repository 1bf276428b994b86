"""Adapters: environments in the forms of other projects, a folder for each form."""
