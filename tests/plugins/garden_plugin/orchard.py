"""An adapter: the configuration says {orchard: {trees: [...]}}, or {orchard: Apple} for one tree."""

from garden_plugin import garden
from trajsmith.environments.adapters.registry import ADAPTERS, Adapter
from trajsmith.environments.native_source import NativeSource
from trajsmith.records import FrozenModel


class OrchardSettings(FrozenModel):
    trees: tuple[str, ...] | str


def open_orchard(settings, options):
    trees = (settings.trees,) if isinstance(settings.trees, str) else settings.trees
    orchard = type("Orchard", (garden.Garden,), {"NAMES": trees, "__module__": __name__, "__doc__": "An orchard."})
    return NativeSource(orchard, options.sizes, options.phrases)


ADAPTERS.register("orchard")(Adapter(OrchardSettings, open_orchard, path_field="trees"))
