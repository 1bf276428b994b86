"""The functions and classes behind `import trajsmith`; the command line calls the same ones."""
