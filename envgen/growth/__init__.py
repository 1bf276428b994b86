"""Environment collections: duplicates, taxonomy, gaps, and growth of environments by models."""
