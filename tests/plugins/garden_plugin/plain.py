"""A provider of sandboxes that starts workers as they are."""

from trajsmith.environments.sandbox.launchers import SANDBOXES


@SANDBOXES.register("plain")
def launch_plainly(command):
    """Start it as it is."""
    return list(command)
