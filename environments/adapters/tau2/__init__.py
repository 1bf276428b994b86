"""Domains of τ²-bench as environments: its sources and data as they are, none of the packages that it needs besides."""
