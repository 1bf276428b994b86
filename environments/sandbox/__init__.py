"""Foreign code in locked-down worker processes. docs/sandbox.md has the threat model.

`settings` is what a user may choose; `host` starts and replaces workers, `connection` talks to one, `link` is a play in
one. `zygote`, `worker`, `serve`, `audit` and `virtual` run on the other side, `lockdown` puts on the kernel's layers.
"""
