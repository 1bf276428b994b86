"""Gold actions of tau2-bench's tasks through its own environments and evaluators: what they say of the perfect agent.

    make .integrations/.tau2
    PYTHONPATH=../tau2-bench/src .integrations/tau2/bin/python benchmarks/public_tau2.py --domains retail telecom

Runs in an environment of its own, with the checkout beside it. Rewards that need what is said (COMMUNICATE, judged
assertions) are left out: gold actions say nothing. Nothing of this project is tuned or trained on these tasks.
"""

import argparse
import sys
from collections import Counter
from typing import Any

DOMAINS = ("mock", "retail", "airline", "telecom")


def history_of(task: Any) -> list[Any]:
    """Return the messages and calls before the task begins; simulations hold them too."""
    return list((task.initial_state.message_history or []) if task.initial_state else [])


def gold_messages(constructor: Any, task: Any) -> list[Any]:
    """The gold actions as the messages of a simulation, with the results that the environment gives."""
    from tau2.data_model.message import AssistantMessage, ToolCall, UserMessage

    environment, start = constructor(), task.initial_state
    history = history_of(task)
    environment.set_state(
        initialization_data=start.initialization_data if start else None,
        initialization_actions=start.initialization_actions if start else None,
        message_history=history,
    )
    actions = list(task.evaluation_criteria.actions or [])
    messages = list(history)
    for number, action in enumerate(actions):
        call = ToolCall(id=f"call_{number}", name=action.name, arguments=action.arguments, requestor=action.requestor)
        message_type = {"assistant": AssistantMessage, "user": UserMessage}[action.requestor]
        messages += [
            message_type(role=action.requestor, content=None, tool_calls=[call]),
            environment.get_response(call),
        ]
    return messages


def score(constructor: Any, task: Any, messages: list[Any]) -> tuple[float, float]:
    """Rewards of the final state and of the actions, by the benchmark's evaluators."""
    from tau2.evaluator.evaluator_action import ActionEvaluator
    from tau2.evaluator.evaluator_env import EnvironmentEvaluator

    state = EnvironmentEvaluator.calculate_reward(constructor, task, messages)
    actions = ActionEvaluator.calculate_reward(task, messages)
    return state.reward, actions.reward


def nothing_is_enough(constructor: Any, task: Any) -> bool:
    """Return True if the benchmark gives full marks for the state to an agent that does nothing."""
    try:
        return score(constructor, task, history_of(task))[0] == 1.0
    except ValueError:  # its assertions raise where what they ask for was never made
        return False


def main() -> None:
    """Print one line per domain; the exit code is 1 if a gold run does not get full score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", nargs="+", default=DOMAINS)
    parser.add_argument("--limit", type=int, help="At most so many tasks of each domain.")
    options = parser.parse_args()
    from loguru import logger
    from tau2.registry import registry

    logger.remove()
    wrong = 0
    for domain in options.domains:
        constructor = registry.get_env_constructor(domain)
        try:
            constructor()
        except FileNotFoundError as error:
            print(f"{domain}: left out, its data is not in the checkout: {error.filename}")
            continue
        tasks = [task for task in registry.get_tasks_loader(domain)() if task.evaluation_criteria][: options.limit]
        rewards = Counter(score(constructor, task, gold_messages(constructor, task)) for task in tasks)
        full = rewards[1.0, 1.0]
        none = sum(nothing_is_enough(constructor, task) for task in tasks)
        print(f"{domain}: {full} of {len(tasks)} gold runs get full score; doing nothing gets the state of {none}")
        for (state, actions), number in (rewards - Counter({(1.0, 1.0): full})).most_common():
            print(f"  state {state:g}, actions {actions:g}: {number}")
        wrong += len(tasks) - full
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
