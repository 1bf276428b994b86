"""A small class in EnvScaler's form, and how tests load one."""

import textwrap
from typing import Any

import orjson

from trajsmith.environments.adapters.envscaler.program import EnvScalerProgram, load
from trajsmith.environments.programs import EnvironmentEpisode

MESSAGES = '''
from collections import defaultdict, deque
from typing import Dict, List, Optional, TypedDict

class User(TypedDict):
    user_id: str
    name: str

class MessageCenter:
    """A message center."""

    def __init__(self, config: dict):
        self.users: Dict[str, User] = {}
        self.messages: Dict[str, dict] = {}
        self.unread = defaultdict(int)
        self.blocked = set()
        self.recent = deque(maxlen=2)
        self.config = config

    def get_user(self, user_id: str) -> dict:
        """Look a user up.

        Args:
            user_id (str): Whose.
        """
        user = self.users.get(user_id)
        if user is None:
            return {"success": False, "error": "User not found"}
        return {"success": True, "data": user}

    def send(self, user_id: str, text: str, tags: Optional[List[str]] = None) -> dict:
        if user_id not in self.users:
            return {"success": False, "error": "User not found"}
        if user_id in self.blocked:
            return {"success": False, "error": "User is blocked"}
        number = f"M{len(self.messages) + 1}"
        self.messages[number] = {"to": user_id, "text": text, "tags": tags or []}
        self.unread[user_id] += 1
        self.recent.append(number)
        return {"success": True, "message": f"sent {number}"}

    def block(self, user_id: str) -> dict:
        self.blocked.add(user_id)
        return {"success": True, "message": "blocked"}

    def crash(self) -> dict:
        return {"success": True, "data": self.users["nobody"]}

    def _secret(self) -> dict:
        return {"success": True}
'''

CONFIG = {"users": {"U1": {"user_id": "U1", "name": "Ann"}, "U2": {"user_id": "U2", "name": "Bo"}}}


def loaded(source: str = MESSAGES, states: Any = (CONFIG,), **more: Any) -> EnvScalerProgram:
    texts = [orjson.dumps(state).decode() for state in states]
    payload = {
        "name": "messages", "file": "messages.py", "source": textwrap.dedent(source), "class_name": "", "tools": None,
        "reads": {}, "description": "", "policy": "",
        "states": [{"name": str(number), "state": text} for number, text in enumerate(texts, 1)],
    }  # fmt: skip
    return load(payload | more)


def started(program: EnvScalerProgram, state: Any = None) -> EnvironmentEpisode:
    return program.start(orjson.dumps(program.states(0)[0] if state is None else state))
