"""The pipeline: configuration, run directory, journal, engine and stages."""
