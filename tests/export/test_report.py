import json
import re
import shutil
import subprocess
from collections import Counter

import pytest
from samples import ENVIRONMENTS, make_item, make_items, make_spec, make_summary

from trajsmith.export import DialogueFaults, ReportBuilder, build_report
from trajsmith.export.gallery import TEXT_LIMIT, Gallery, build_gallery_entry
from trajsmith.export.report import _gallery_note, _heat
from trajsmith.export.report_words import describe_failed_checks, describe_fault, describe_reason
from trajsmith.export.sibling_pairs import SiblingPairs
from trajsmith.export.skills import SkillTally
from trajsmith.records import CheckOutcome, FaultSummary, InjectedFault, Message
from trajsmith.usersim import FaultSettings

SPECS = [make_spec(name) for name in ENVIRONMENTS]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0", "--dump-dom",
)  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    build_report(make_summary(), SPECS, make_items(60), path)
    return path


def embedded(html: str) -> list[dict]:
    return json.loads(re.search(r'<script type="application/json" id="items">(.*?)</script>', html, re.S)[1])


def test_report_is_one_file(report):
    assert [path.name for path in report.parent.iterdir()] == ["report.html"]
    html = report.read_text()
    assert not re.search(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", html.split('id="items">')[0])
    assert not re.findall(r'(?:src|href)="(?!#|data:)', html)
    assert "quick&lt;start&gt;" in html and "quick<start>" not in html


def test_hostile_tool_output_cannot_leave_its_script(report):
    html = report.read_text()
    assert html.count("<script") == 2
    assert "throw Error(1)" in json.dumps(embedded(html))


def test_gallery_shows_the_hidden_side(report):
    item = next(item for item in embedded(report.read_text()) if item["accepted"])
    turn = item["turns"][0]
    assert turn["known"][1] == {"label": "reason", "said": "it is <b>late</b>", "at_once": False, "how": "value"}
    assert turn["gold"][0]["name"] == "cancel_order"
    assert [effect["tool"] for effect in turn["effects"]] == ["cancel_order", "tag_order"]
    assert turn["effects"][1] == {"tool": "tag_order", "actor": "assistant", "error": "refused", "changes": []}
    assert item["checks"][0]["passed"] is True


def test_never_called_tools_and_drop_reasons_stand_out(report):
    html = report.read_text()
    assert html.count("<code>never_used</code>") == 3
    assert "no arguments found <b>31</b>" in html


def test_gallery_is_bounded_even_and_independent_of_order():
    chosen = []
    for items in (list(make_items(300)), list(make_items(300))[::-1]):
        gallery = Gallery(24, len(SPECS))
        for item in items:
            gallery.add(*item)
        assert all(len(pool) <= 16 for pool in gallery._pools.values())
        chosen.append([json.loads(entry) for entry in gallery.chosen().values()])
    assert chosen[0] == chosen[1]
    shown = [entry["environment"] for entry in chosen[0]]
    assert (len(shown), {name: shown.count(name) for name in shown}) == (24, dict.fromkeys(ENVIRONMENTS, 8))
    assert sum(not entry["accepted"] for entry in chosen[0]) == 6


def test_long_output_is_cut_and_says_so():
    task, trajectory, verdict = next(make_items(1))
    long = Message(role="assistant", content="x" * (TEXT_LIMIT + 7))
    entry = build_gallery_entry(task, trajectory.model_copy(update={"messages": (*trajectory.messages, long)}), verdict)
    assert entry["messages"][-1]["content"].endswith("… (7 more characters)")


def test_empty_run_has_a_report(tmp_path):
    build_report(make_summary(funnel={}, stages=(), rejected={}), [], [], tmp_path / "report.html")
    assert "No conversation was played." in (tmp_path / "report.html").read_text()


def make_siblings(kind="wrong_entity", turns=2):
    """An accepted play, and one of the same task whose second turn cancels another order."""
    task, right, verdict = make_item(0, turns)
    messages, place = list(right.messages), right.turns[-1].start + 4
    call = messages[place].tool_calls[0]
    wrong = call.function.model_copy(update={"arguments": {**call.function.arguments, "order_id": "W999"}})
    messages[place] = messages[place].model_copy(update={"tool_calls": (call.model_copy(update={"function": wrong}),)})
    played = right.model_copy(
        update={"messages": tuple(messages), "injected": (InjectedFault(kind=kind, message=place),), "candidate": 1}
    )
    played = played.model_copy(update={"id": played.content_id()})
    checks = (CheckOutcome(says="the answer tells 1.84", kind="answer", passed=False),)
    rejected = verdict.model_copy(
        update={"trajectory_id": played.id, "accepted": False, "outcome": "partial", "checks": checks,
                "reasons": ("check failed: answer",)}
    )  # fmt: skip
    return (task, right, verdict), (task, played, rejected)


def write_report(path, items, summary, **options):
    builder = ReportBuilder(SPECS)
    for item in items:
        builder.add(*item)
    builder.write(summary, path, **options)
    return path.read_text()


def test_a_rejected_play_stands_beside_its_accepted_sibling_with_the_wrong_step(tmp_path):
    html = write_report(tmp_path / "report.html", make_siblings(), make_summary()).split('id="items">')[0]
    pane = html.split('<div class="pane">')[1].split("</section>")[0]
    assert "for another thing than the one that was meant" in pane and "not in the answer: 1.84" in pane
    accepted, rejected = pane.split("<h4>Rejected")
    assert "<mark>W1</mark>" in accepted and "wrong step" not in accepted
    assert "<mark>W999</mark>" in rejected and rejected.count("wrong step") == 1
    assert "cancel_order" in rejected.split("wrong step")[1].split("</div>")[0]
    assert "3 messages, the same in both" in rejected
    assert re.findall(r'href="#(traj_[0-9a-f]{16})"', pane) == [item[1].id for item in make_siblings()]


def test_pairs_need_an_accepted_and_a_rejected_play_of_one_task():
    right, wrong = make_siblings()
    for items in ([right], [wrong], [right, make_item(1, accepted=False, outcome="partial")]):
        pairs = SiblingPairs()
        for item in items:
            pairs.add(*item)
        assert pairs.list_pairs() == []


def test_one_pair_is_kept_for_each_kind_whatever_the_number_of_plays():
    pairs = SiblingPairs()
    for turns in (3, 1, 2):
        for item in make_siblings(turns=turns):
            pairs.add(*item)
    assert [pair.kind for pair in pairs.list_pairs()] == ["wrong_entity"]
    assert pairs.rejected == {"wrong_entity": 3}
    assert len(pairs.serialize_plays()) == 2


def test_injected_mistakes_are_counted_with_recall_and_precision(tmp_path):
    faults = {
        "none": FaultSummary(plays=50, rejected=2),
        "wrong_entity": FaultSummary(plays=8, rejected=6, removed=1),
        "wrong_report": FaultSummary(plays=4, rejected=4),
    }
    html = write_report(tmp_path / "report.html", make_siblings(), make_summary(faults=faults))
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr><th scope=.row.*?</tr>", html)]
    assert rows[:3] == [["8", "6", "1", "1", "87.5 %"], ["4", "4", "0", "0", "100 %"], ["12", "10", "1", "1", "91.6 %"]]
    assert "<b>2 of 50</b> (4.0 %). Precision: 84.6 %." in html


def test_every_injected_mistake_has_plain_words():
    for kind in FaultSettings.model_fields:
        name, sentence = describe_fault(kind)
        assert sentence and "_" not in name


def test_reasons_and_checks_are_told_in_plain_words():
    assert describe_reason("check failed: conduct: the agent asks first") == "not so: the agent asks first"
    assert describe_reason("some_new_reason") == "some new reason"
    checks = [CheckOutcome(says=f"the answer tells {name}", kind="answer", passed=False) for name in "abc"]
    checks += [CheckOutcome(says="nothing changes but /a", kind="untouched", passed=False, detail="/orders/new:0c")]
    checks += [CheckOutcome(says="is fine", kind="state", passed=True)]
    assert describe_failed_checks(checks) == ["not in the answer: a, b and 1 more", "changed as well: orders › (new)"]


def test_plays_that_are_right_and_not_chosen_are_no_rejections(tmp_path):
    rejected = {"not the best candidate": 30, "not chosen: enough": 9, "check failed: answer": 140}
    html = write_report(tmp_path / "report.html", make_siblings(), make_summary(rejected=rejected))
    assert "rejected <b>140</b>" in html and "right, not chosen <b>39</b>" in html
    assert "not the best candidate" not in html.split("Why plays were rejected")[1].split("</figure>")[0]


def test_skills_are_counted_from_records_with_honest_zeros():
    tally = SkillTally()
    task, trajectory, _ = make_item(1, turns=2)
    asked = [
        Message(role="assistant", content="It costs £2.50. Shall I cancel it?"),
        Message(role="user", content="Yes"),
    ]
    messages = (*trajectory.messages[:2], *asked, *trajectory.messages[2:])
    spans = [span.model_copy(update={"start": span.start + 2, "stop": span.stop + 2}) for span in trajectory.turns]
    spans[0] = spans[0].model_copy(update={"start": trajectory.turns[0].start})
    tally.add(task, trajectory.model_copy(update={"messages": messages, "turns": tuple(spans)}), frozenset(["ping"]))
    shown = {skill.name: (skill.dialogues, skill.detail) for skill in tally.list_skills()}
    assert shown["questions to the user"] == (1, "in 1 of 2 turns")
    assert shown["confirmations"] == (1, "1 times a yes was asked for")
    assert shown["parallel calls"] == (1, "2 of 6 messages with calls")
    assert shown["refused calls"][0] == 1 and shown["distractor tools"][0] == 1
    assert shown["reasoning"] == (1, "2 of 9 messages of the agent")
    assert [shown[name][0] for name in ("task variants", "tool search", "several environments")] == [0, 0, 0]


def test_few_tools_and_batches_that_are_refused_in_part_are_skills():
    tally = SkillTally()
    task, trajectory, _ = make_item(1, turns=2)
    own = frozenset({*trajectory.tools, "a", "b", "c"})
    tally.add(task.model_copy(update={"variant": "partial_batch"}), trajectory, own)
    tally.add(task, trajectory, own - {"c"})
    shown = {skill.name: skill.dialogues for skill in tally.list_skills()}
    assert (shown["few tools"], shown["batches refused in part"], shown["distractor tools"]) == (1, 1, 0)


def test_faults_of_language_are_shown_only_where_they_were_counted(tmp_path):
    items = make_siblings()
    without = write_report(tmp_path / "a.html", items, make_summary())
    assert "trajsmith report RUN --audit" in without
    counts = DialogueFaults(40, Counter(unsupported_claim=3), Counter(unsupported_claim=2))
    html = write_report(tmp_path / "b.html", items, make_summary(), faults=counts)
    assert "dialogues of 40" in html and 'unsupported claim</th><td class="missed">3</td><td>2</td>' in html


def test_all_dialogues_are_linked_where_their_pages_are(tmp_path):
    html = write_report(tmp_path / "report.html", make_siblings(), make_summary(), pages="gallery/index.html")
    assert html.count('href="gallery/index.html"') == 2


def test_main_facts_need_no_script(report):
    html = re.sub(r"<script.*?</script>", "", report.read_text(), flags=re.S)
    assert "Why plays were rejected" in html and "tag_order <b>" in html and "<noscript>" in html


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_report_opens_without_errors(report, tmp_path):
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", report.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in shown.stderr
    assert "60 shown" in shown.stdout
    assert len(re.findall(r'class="item"', shown.stdout)) == 60
    assert "Hidden from the agent" in shown.stdout
    assert "&lt;/script&gt;&lt;script&gt;throw Error(1)" in shown.stdout
    assert "<img" not in shown.stdout.split("</main>")[0]


@pytest.mark.parametrize(("with_rejected", "ending"), [(True, ", with some that were not accepted."), (False, ".")])
def test_the_gallery_speaks_of_rejected_conversations_only_where_there_are_some(with_rejected, ending):
    assert _gallery_note(2, 9, with_rejected) == f"2 of 9 conversations, spread over the environments{ending}"


def test_each_task_source_is_counted(tmp_path):
    items = [make_item(number, accepted=number != 3) for number in range(4)]
    sourced = [
        (task.model_copy(update={"source": source}), trajectory, verdict)
        for (task, trajectory, verdict), source in zip(items, (None, "program", "program", "program"), strict=True)
    ]
    statistics = build_report(make_summary(), SPECS, sourced, tmp_path / "report.html")
    assert statistics.sources == {"chain": {True: 1}, "program": {True: 2, False: 1}}
    chart = (tmp_path / "report.html").read_text().split("Accepted per task source")[1].split("</figure>")[0]
    assert re.findall(r'row-label" title="(\w+)"', chart) == ["chain", "program"]
    assert '<span class="row-value">2<small> of 3</small></span>' in chart


def test_the_most_called_tool_has_the_darkest_colour():
    assert [_heat(count, 53) for count in (0, 1, 53)] == [0, 1, 5]
