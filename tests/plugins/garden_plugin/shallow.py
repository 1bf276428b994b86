"""A sampler of chains: tools that need nothing first."""

from trajsmith.toolgraph import SAMPLERS


@SAMPLERS.register("shallow")
class ShallowSampler:
    def __init__(self, network, settings):
        self.depths = network.depths

    def draw(self, rng, length):
        tools = rng.sample(range(len(self.depths)), min(length, len(self.depths)))
        return sorted(tools, key=lambda tool: self.depths[tool])
