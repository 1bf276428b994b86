"""Answers questions about BFCL in the environment that holds `bfcl-eval`: tasks, executed calls, and its checker.

Runs as a program of its own, with nothing of trajsmith: one JSON object per line in, one out.
"""

import copy
import importlib.metadata
import json
import sys
import types
from pathlib import Path
from typing import Any

NAME = "trajsmith"
FOLDERS = {
    "GorillaFileSystem": "gorilla_file_system", "MathAPI": "math_api", "MessageAPI": "message_api",
    "TwitterAPI": "posting_api", "TicketAPI": "ticket_api", "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking", "VehicleControlAPI": "vehicle_control",
}  # fmt: skip
MULTI_TURN = "multi_turn"


def load_tasks(category: str) -> list[dict[str, Any]]:
    """Return the tasks of a category with their functions and gold."""
    from bfcl_eval.constants.eval_config import POSSIBLE_ANSWER_PATH, PROMPT_PATH

    name = f"BFCL_v4_{category}.json"
    if not (Path(PROMPT_PATH) / name).is_file():
        raise ValueError(f"no category {category!r}")
    tests = [json.loads(line) for line in (Path(PROMPT_PATH) / name).read_text("utf-8").splitlines() if line]
    answers = Path(POSSIBLE_ANSWER_PATH) / name
    gold = {}
    if answers.is_file():
        rows = (json.loads(line) for line in answers.read_text("utf-8").splitlines() if line)
        gold = {row["id"]: row["ground_truth"] for row in rows}
    for test in tests:
        test["ground_truth"] = gold.get(test["id"], [])
        if category.startswith(MULTI_TURN):
            test["function"], test["arriving"] = load_functions(test)
            add_prompts(test)
    return tests


def add_prompts(test: dict[str, Any]) -> None:
    """Say what BFCL says in a turn in which functions arrive and the user says nothing."""
    from bfcl_eval.constants.default_prompts import DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC as ARRIVED

    for number in test["arriving"]:
        if not test["question"][int(number)]:
            test["question"][int(number)] = [{"role": "user", "content": ARRIVED}]


def load_functions(test: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """Return the functions of a multi-turn task, and those that it holds back, by the turn in which they arrive."""
    from bfcl_eval.constants.eval_config import MULTI_TURN_FUNC_DOC_PATH

    functions: list[dict[str, Any]] = []
    for name in test["involved_classes"]:
        text = (Path(MULTI_TURN_FUNC_DOC_PATH) / f"{FOLDERS[name]}.json").read_text("utf-8")
        functions += [json.loads(line) for line in text.splitlines() if line]
    left_out, missed = set(test.get("excluded_function", ())), test.get("missed_function", {})
    arriving = {turn: [one for one in functions if one["name"] in names] for turn, names in missed.items()}
    hidden = left_out | {one for names in missed.values() for one in names}
    return [one for one in functions if one["name"] not in hidden], arriving


def execute(test: dict[str, Any], category: str, run: str, calls: list[str]) -> list[str]:
    """Execute calls of a multi-turn task on the environments of this run of it."""
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

    results, _ = execute_multi_turn_func_call(
        calls, copy.deepcopy(test["initial_config"]), test["involved_classes"], f"{NAME}_{run}", test["id"],
        long_context="long_context" in category or "composite" in category,
    )  # fmt: skip
    return list(results)


def check(test: dict[str, Any], category: str, run: str, calls: list[Any]) -> dict[str, Any]:
    """Return the verdict of BFCL's own checker.

    Single-turn calls are `{name: arguments}`; multi-turn ones are lists of steps of calls as text, one per turn.
    """
    if category.startswith(MULTI_TURN):
        from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

        if len(calls) != len(test["ground_truth"]):
            return {"valid": False, "error_type": "multi_turn:force_terminated"}
        return dict(multi_turn_checker(calls, test["ground_truth"], test, category, f"{NAME}_{run}"))
    if "relevance" in category:  # their rule for irrelevance and relevance: a call must not, or must, be there
        wanted = "irrelevance" not in category
        error = "relevance_error:decoder_failed" if wanted else "irrelevance_error:decoder_success"
        return {"valid": bool(calls) is wanted, "error_type": error}
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    languages = {"simple_java": Language.JAVA, "simple_javascript": Language.JAVASCRIPT}
    language = languages.get(category, Language.PYTHON)
    return dict(ast_checker(test["function"], calls, test["ground_truth"], language, category, NAME))


def main() -> None:
    """Answer lines until the input ends."""
    configuration = types.ModuleType("bfcl_eval.constants.model_config")  # the real one imports every provider's client
    configuration.MODEL_CONFIG_MAPPING = {  # type: ignore[attr-defined]
        NAME: types.SimpleNamespace(underscore_to_dot=False)
    }
    sys.modules[configuration.__name__] = configuration
    answers, sys.stdout = sys.stdout, sys.stderr  # their modules print
    tasks: dict[str, dict[str, dict[str, Any]]] = {}
    for line in sys.stdin:
        question = json.loads(line)
        try:
            kind, category = question["kind"], question.get("category", "")
            if kind == "version":
                answer: Any = importlib.metadata.version("bfcl-eval")
            else:
                if category not in tasks:
                    tasks[category] = {test["id"]: test for test in load_tasks(category)}
                if kind == "tasks":
                    answer = list(tasks[category].values())
                else:
                    work = execute if kind == "execute" else check
                    answer = work(tasks[category][question["task"]], category, question["run"], question["calls"])
            reply: dict[str, Any] = {"answer": answer}
        except Exception as error:  # noqa: BLE001 - whatever their code raises is the answer to this line
            reply = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps({"id": question["id"]} | reply, default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
