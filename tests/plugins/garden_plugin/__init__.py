"""A plug-in with one thing of every kind; the test installs it."""
