"""Make environments from sources and with models."""
