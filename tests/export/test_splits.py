from collections import defaultdict

import pytest
from pydantic import ValidationError
from samples import make_items, make_task

from trajsmith.export import SplitSettings
from trajsmith.records import InputError

SETTINGS = SplitSettings(held_out=("clinic",), validation=0.2, test=0.1)


def test_held_out_environments_are_test_and_only_there():
    for task, _, _ in make_items(60):
        assert (SETTINGS.of(task) == "test") or task.environments != ("clinic",)


def test_variants_of_a_grounded_chain_stay_together():
    places = defaultdict(set)
    for number in range(200):
        task = make_task(number, 1, "shop")
        for variant in ("base", "missing_function", "changed_mind"):
            places[task.grounded_id].add(SETTINGS.of(task.model_copy(update={"variant": variant, "id": f"x{variant}"})))
    assert all(len(found) == 1 for found in places.values())


def test_shares_are_about_what_was_asked():
    found = [SETTINGS.of(make_task(number, 1, "shop")) for number in range(1000)]
    assert abs(found.count("validation") - 200) < 45 and abs(found.count("test") - 100) < 35


def test_the_split_of_a_task_is_fixed():
    assert [SETTINGS.of(make_task(number, 1, "shop")) for number in range(8)] == [
        "test",
        "train",
        "train",
        "test",
        "train",
        "train",
        "train",
        "validation",
    ]


def test_everything_is_train_unless_asked():
    assert {SplitSettings().of(task) for task, _, _ in make_items(30)} == {"train"}


def test_unknown_and_total_hold_outs_are_refused():
    with pytest.raises(InputError, match="no environment klinik; there are clinic, shop"):
        SplitSettings(held_out=("klinik",)).check(["shop", "clinic"])
    with pytest.raises(InputError, match="nothing is left to train on"):
        SplitSettings(held_out=("shop",)).check(["shop"])
    with pytest.raises(ValidationError, match="leave something to train on"):
        SplitSettings(validation=0.5, test=0.5)
