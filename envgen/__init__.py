"""Making and examining environments. The doctor examines any environment without a model."""
