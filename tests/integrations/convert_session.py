"""Convert session logs of Claude Code into ATIF documents by Harbor's own converter, and print these.

python convert_session.py FOLDER ..., each with one log in FOLDER/sessions/projects/PROJECT
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # prices from the package, not from the network

from harbor.agents.installed.claude_code import ClaudeCode

for folder in map(Path, sys.argv[1:]):
    trajectory = ClaudeCode(logs_dir=folder).convert_trajectory(folder)
    sys.stdout.write(json.dumps(trajectory.to_json_dict()) + "\n")
sys.stdout.write(json.dumps({"version": version("harbor")}) + "\n")
