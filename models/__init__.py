"""One interface for every chat model: providers, retries, limits, response cache, structured output and usage.

Importing this package loads no network client: modules that talk to servers (`trajsmith.models.registry`,
`trajsmith.models.structured`, `trajsmith.models.usage`) are imported by name.
"""

from trajsmith.models.checkpoint_info import CheckpointInfo, read_checkpoint_info, write_checkpoint_info
from trajsmith.models.model import (
    CallableModel,
    ChatModel,
    ChatReply,
    ChatRequest,
    MalformedCall,
    Usage,
    function_tool,
)
from trajsmith.models.settings import (
    ROLES,
    SCRIPTED,
    BudgetSettings,
    ModelSettings,
    Price,
    Role,
    RoleSettings,
    RolesSettings,
    Sampling,
)
from trajsmith.models.token_generation import TokenGenerator

__all__ = [
    "ROLES",
    "SCRIPTED",
    "BudgetSettings",
    "CallableModel",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "CheckpointInfo",
    "MalformedCall",
    "ModelSettings",
    "Price",
    "Role",
    "RoleSettings",
    "RolesSettings",
    "Sampling",
    "TokenGenerator",
    "Usage",
    "function_tool",
    "read_checkpoint_info",
    "write_checkpoint_info",
]
