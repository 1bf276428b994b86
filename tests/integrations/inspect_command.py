"""The command `inspect` with one more provider of models, `silent`, which needs no network and can do nothing.

python inspect_command.py eval ...
"""

from inspect_ai._cli.main import main
from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi


@modelapi(name="silent")
class SilentModel(ModelAPI):
    """Says the same to everything."""

    async def generate(self, input, tools, tool_choice, config):
        output = ModelOutput.from_content("silent", "I cannot do that.")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output


main()
