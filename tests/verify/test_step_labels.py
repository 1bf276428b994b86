"""Labels of calls by runs without them: planted redundant, harmful and recovering calls are found, nothing else is."""

import desk
import pytest

from trajsmith.environments import NativeSession
from trajsmith.export import build_row
from trajsmith.records import EnvironmentFault, JsonObject, Trajectory, Verdict
from trajsmith.train_grpo.episodes import EpisodeSource
from trajsmith.train_grpo.rewards import compute_episode_reward
from trajsmith.usersim import PlaySettings
from trajsmith.verify import VerifySettings, verify_trajectory
from trajsmith.verify.rewards import REWARDS, RewardEvidence, RewardSettings, needs_step_labels
from trajsmith.verify.step_labels import ASKED, LEADS_AWAY, LEADS_BACK, NO_DIFFERENCE, OTHER_OUTCOME, label_steps

Call = tuple[str, JsonObject]

BLUE, PINK, RED = (("paint", {"note_id": "N3", "color": color}) for color in ("blue", "pink", "red"))
AWAY: Call = ("archive", {"note_id": "N3"})
BACK: Call = ("unarchive", {"note_id": "N3"})
AWAY_TOO: Call = ("archive", {"note_id": "N2"})
BACK_TOO: Call = ("unarchive", {"note_id": "N2"})
REFUSED: Call = ("archive", {"note_id": "N77"})
COUNT: Call = ("count_notes", {})
LIST: Call = ("list_notes", {"limit": 3})
SHORT = {"r": "redundant", "h": "harmful", "b": "recovering"}


async def label(planted: list[Call], prune: bool = False) -> tuple[Trajectory, Verdict, list[int]]:
    """Play the gold run with calls planted after its first call, and return the events that they are."""
    task, lines = await desk.make_task(), desk.gold_lines()
    lines[0][1:1] = [("", [call]) for call in planted]
    trajectory = await desk.played(task, lines)
    settings = VerifySettings(step_labels=True, prune=prune)
    verdict = await verify_trajectory(task, trajectory, desk.STATE, desk.session(), settings)
    assert verdict.accepted, verdict.reasons
    return trajectory, verdict, list(range(1, 1 + len(planted)))


@pytest.mark.parametrize(
    ("planted", "expected"),
    [
        pytest.param([COUNT], "r", id="a-read"),
        pytest.param([LIST, LIST], "rr", id="a-read-twice"),
        pytest.param([REFUSED], "r", id="refused"),
        pytest.param([RED], "r", id="a-write-that-changes-nothing"),
        pytest.param([BLUE, RED], "hb", id="overwritten"),
        pytest.param([AWAY, BACK], "hb", id="undone"),
        pytest.param([AWAY, BACK, BACK], "hbr", id="undone-twice"),
        pytest.param([AWAY, COUNT, BACK], "hrb", id="a-read-between"),
        pytest.param([BLUE, PINK, RED], "hhb", id="two-mistakes-one-repair"),
        pytest.param([AWAY, AWAY_TOO, BACK, BACK_TOO], "hhbb", id="two-mistakes-two-repairs"),
        pytest.param([AWAY, BACK, BLUE, RED], "hbhb", id="one-mistake-after-the-other"),
    ],
)
async def test_planted_calls_have_their_labels(planted: list[Call], expected: str) -> None:
    trajectory, verdict, events = await label(planted)
    labels = {step.event: step for step in verdict.step_labels or ()}
    assert list(labels) == list(range(len(trajectory.events)))
    assert [labels[event].label for event in events] == [SHORT[letter] for letter in expected]
    reasons = {"redundant": NO_DIFFERENCE, "harmful": LEADS_AWAY, "recovering": LEADS_BACK}
    assert all(labels[event].why == reasons[labels[event].label] for event in events)
    assert {labels[event].label for event in labels if event not in events} == {"needed"}
    assert verdict.pruned == ()


async def test_needed_calls_say_what_shows_it() -> None:
    _, verdict, _ = await label([])
    whys = [step.why for step in verdict.step_labels or ()]
    # The second paint hides the first, and the results of the reads are told or used by nobody but the count.
    assert [why == OTHER_OUTCOME for why in whys] == [False, False, True, True, True, True, True, False]
    assert whys[1] == ASKED
    assert whys[7] != OTHER_OUTCOME


async def test_a_mistake_and_its_repair_are_taken_out_together() -> None:
    """Neither can go alone, since a note cannot be put away twice; a count that is told keeps all three from going."""
    lines = desk.gold_lines()
    lines[1][2:2] = [("", [("unarchive", {"note_id": "N1"})]), ("", [("archive", {"note_id": "N1"})])]
    lines[0].insert(5, ("", [COUNT]))
    lines[0][-1] = ("There is trip now, N4, and there were 5 notes.", [])
    task = await desk.make_task()
    trajectory = await desk.played(task, lines)
    settings = VerifySettings(step_labels=True)
    verdict = await verify_trajectory(task, trajectory, desk.STATE, desk.session(), settings)
    assert [call.tool for call in verdict.pruned] == ["unarchive", "archive"]
    labels = {step.event: step.label for step in verdict.step_labels or ()}
    assert [labels[call.event] for call in verdict.pruned] == ["harmful", "recovering"]
    assert set(labels.values()) == {"harmful", "recovering", "needed"}


async def test_the_row_has_the_labels_of_its_calls() -> None:
    task = await desk.make_task()
    for prune in (False, True):
        trajectory, verdict, _ = await label([AWAY, BACK, COUNT], prune)
        row = build_row(task, trajectory, verdict, desk.SPEC)
        calls = [call["function"]["name"] for message in row["messages"] for call in message.get("tool_calls", ())]
        assert [step["tool"] for step in row["step_labels"]] == calls
        planted = [step["label"] for step in row["step_labels"] if step["label"] != "needed"]
        assert planted == ([] if prune else ["harmful", "recovering", "redundant"])


@pytest.mark.parametrize(
    ("planted", "value"),
    [
        pytest.param([], 1.0, id="all-needed"),
        pytest.param([COUNT], 8 / 9, id="a-read"),
        pytest.param([AWAY, BACK], 9 / 10, id="a-repair-is-worth-making"),
        pytest.param([AWAY, COUNT, BACK], 9 / 11, id="harmful-and-redundant"),
    ],
)
async def test_the_reward_is_the_share_of_calls_worth_making(planted: list[Call], value: float) -> None:
    task, lines = await desk.make_task(), desk.gold_lines()
    lines[0][1:1] = [("", [call]) for call in planted]
    trajectory = await desk.played(task, lines)
    settings = VerifySettings(step_labels=True, rewards=RewardSettings(names=("steps",)))
    verdict = await verify_trajectory(task, trajectory, desk.STATE, desk.session(), settings)
    assert len(trajectory.events) == 8 + len(planted)
    assert verdict.rewards == {"steps": round(value, 4)}
    assert compute_episode_reward("steps", task, trajectory, verdict) == round(value, 4)


async def test_a_failed_play_earns_nothing_for_its_steps_and_no_labels_tell_nothing() -> None:
    task, lines = await desk.make_task(), desk.gold_lines()
    lines[0][1:1] = [("", [AWAY])]
    trajectory = await desk.played(task, lines)
    settings = VerifySettings(step_labels=True, rewards=RewardSettings(names=("steps",)))
    verdict = await verify_trajectory(task, trajectory, desk.STATE, desk.session(), settings)
    assert not verdict.accepted and verdict.rewards == {"steps": 0.0}
    right = await desk.played(task, desk.gold_lines())
    verdict = await verify_trajectory(task, right, desk.STATE, desk.session())
    assert verdict.accepted and compute_episode_reward("steps", task, right, verdict) is None


def test_the_reward_of_steps_needs_labels() -> None:
    with pytest.raises(ValueError, match=r"rewards\.names: steps needs step_labels: true"):
        VerifySettings(rewards=RewardSettings(names=("checks", "steps")))


def test_a_reward_of_a_plug_in_declares_that_it_needs_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    for registered in ("_things", "_modules", "_loaded"):
        monkeypatch.setattr(REWARDS, registered, dict(getattr(REWARDS, registered)))

    @REWARDS.register("harmless")
    @needs_step_labels
    def harmless(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
        return None if evidence.step_labels is None else 1.0

    with pytest.raises(ValueError, match=r"rewards\.names: harmless needs step_labels: true"):
        VerifySettings(rewards=RewardSettings(names=("checks", "harmless")))
    for rewards, labels in ((("accepted", "harmless"), True), (("accepted", "checks"), False)):
        source = EpisodeSource([], {}, None, PlaySettings(), rewards=rewards)  # type: ignore[arg-type]
        assert source.labels_steps is labels


async def test_labels_are_off_by_default() -> None:
    task = await desk.make_task()
    trajectory = await desk.played(task, desk.gold_lines())
    verdict = await verify_trajectory(task, trajectory, desk.STATE, desk.session())
    assert verdict.accepted and verdict.step_labels is None
    assert "step_labels" not in verdict.to_line().decode()
    assert build_row(task, trajectory, verdict, desk.SPEC)["step_labels"] == []


async def test_a_broken_environment_leaves_calls_without_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    trajectory, verdict, events = await label([AWAY, BACK])
    assert verdict.step_labels is not None

    async def fail(*_: object) -> None:
        raise EnvironmentFault("timeout", "desk", "too slow")

    monkeypatch.setattr(NativeSession, "call", fail)
    assert await label_steps(trajectory, set(events), {0}, desk.STATE, desk.session()) is None
