"""What keeps a collection of environments good as it grows: duplicates, taxonomy, gaps, richer ones."""
