"""Environments in the form of EnvScaler: a class with a configuration, its methods, their schemas."""
