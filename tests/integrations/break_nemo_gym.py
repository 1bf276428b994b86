"""Send NeMo Gym's server of a run what it cannot use, break its environment, and print status codes.

python break_nemo_gym.py RUN
"""

import json
import sys
from pathlib import Path

from nemo_gym.server_utils import ServerClient
from starlette.testclient import TestClient

from trajsmith.pipeline import nemo_gym_server
from trajsmith.records import EnvironmentFault


class RunServer(nemo_gym_server.TaskServer):
    """Serves the run that is named."""

    RUN = Path(sys.argv[1])


def fail(*_):
    raise EnvironmentFault("crash", "bank", "it is gone")


config = nemo_gym_server.TaskServerConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="run")
server = RunServer(config=config, server_client=ServerClient.model_construct())
task = next(iter(nemo_gym_server.keep_tasks_open(RunServer.RUN).tasks))
body = {"task_id": task, "responses_create_params": {"input": []}}
reply = {
    "id": "r", "created_at": 0, "model": "m", "object": "response", "output": [], "tools": [], "tool_choice": "auto",
    "parallel_tool_calls": False,
}  # fmt: skip


def show(name, answer):
    sys.stdout.write(json.dumps({"request": name, "status": answer.status_code, "text": answer.text}) + "\n")


with TestClient(server.setup_webserver()) as client:
    show("seed", client.post("/seed_session", json=body))
    show("broken json", client.post("/message_user", content=b'{"text": '))
    show("a list", client.post("/message_user", content=b"[1]"))
    show("call", client.post("/message_user", json={"text": "Hello."}))
    nemo_gym_server.judge_transcript = fail
    show("fault", client.post("/verify", json=body | {"response": reply}))
