raise RuntimeError("the package itself is never run: it would import all that the benchmark needs besides")
