from enum import Enum

from loguru import logger

from tau2.utils import update_pydantic_model_with_dict


class ToolType(str, Enum):  # noqa: UP042 - as the published one is
    READ = "read"
    WRITE = "write"
    GENERIC = "generic"


def is_tool(tool_type=ToolType.READ):
    def mark(function):
        function.tool_type = tool_type
        return function

    return mark


class ToolKitBase:
    def __init__(self, db=None):
        self.db = db
        logger.debug("a toolkit over {}", db)

    def get_tools(self):
        names = [name for name in dir(type(self)) if hasattr(getattr(type(self), name), "tool_type")]
        return {name: getattr(self, name) for name in names}

    def use_tool(self, tool_name, **arguments):
        return self.get_tools()[tool_name](**arguments)

    def tool_mutates_state(self, name):
        return getattr(type(self), name).tool_type == ToolType.WRITE

    def update_db(self, data):
        self.db = update_pydantic_model_with_dict(self.db, data)
