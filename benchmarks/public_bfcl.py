"""Gold actions of BFCL's multi-turn tasks through BFCL's own package: what its checker says of the perfect agent.

    make .integrations/.bfcl
    .integrations/bfcl/bin/python benchmarks/public_bfcl.py

Runs in an environment of its own, since `bfcl-eval` pins numpy 1.26 and model stacks that are not needed here; the
checker and the data are in its wheel. Nothing of this project is tuned or trained on these tasks: the run shows that
the checker works here, so that a model's score from it can be trusted.
"""

import argparse
import json
import sys
from collections import Counter

CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")


def entries(category: str) -> list[tuple[dict, list[list[str]]]]:
    """Test entries of a category with their gold calls."""
    from bfcl_eval.constants.eval_config import POSSIBLE_ANSWER_PATH, PROMPT_PATH

    name = f"BFCL_v4_{category}.json"
    tests, answers = (
        {row["id"]: row for row in map(json.loads, (folder / name).read_text("utf-8").splitlines())}
        for folder in (PROMPT_PATH, POSSIBLE_ANSWER_PATH)
    )
    return [(test, answers[key]["ground_truth"]) for key, test in tests.items()]


def score(test: dict, gold: list[list[str]], category: str, cut: bool) -> str:
    """Return the verdict of the checker: "valid", or its error type.

    Args:
        cut: Leave out the last gold call that changes a turn, to see that the checker can say no.
    """
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

    turns = [[turn] if turn else [] for turn in gold]
    if cut:
        last = max(index for index, turn in enumerate(turns) if turn)
        turns[last] = []
    verdict = multi_turn_checker(turns, gold, test, category, "cut" if cut else "gold")
    return "valid" if verdict["valid"] else str(verdict.get("error_type", "invalid"))


def main() -> None:
    """Print one line per category; the exit code is 1 if a gold run is not valid or a cut one is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--categories", nargs="+", default=CATEGORIES)
    parser.add_argument("--limit", type=int, help="At most so many tasks of each category.")
    options = parser.parse_args()
    wrong = 0
    for category in options.categories:
        known = entries(category)[: options.limit]
        gold = Counter(score(test, answer, category, False) for test, answer in known)
        cut = Counter(score(test, answer, category, True) for test, answer in known)
        print(f"{category}: {gold['valid']} of {len(known)} valid; without the last turn {cut['valid']}")
        wrong += len(known) - gold["valid"] + cut["valid"]
        for reason, number in (gold - Counter(valid=gold["valid"])).most_common():
            print(f"  {reason}: {number}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
