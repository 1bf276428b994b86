"""Task sets: themes of what is stateful, repetitions and small themes left out, every request accounted for."""

import json
from pathlib import Path

import pytest

from trajsmith.envgen.sources.clustering import cluster_requests, find_content_words
from trajsmith.envgen.sources.model_classification import read_task_set_with_model
from trajsmith.envgen.sources.task_sets import read_task_set
from trajsmith.models.model import ChatReply, Usage
from trajsmith.models.prompts import Prompts
from trajsmith.phrasing.near_duplicates import find_repeats
from trajsmith.records import InputError, Message

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data" / "sets"
LOANS = [
    "Renew the loan of my library book",
    "Cancel a library loan of two books",
    "Please extend this book loan, then renew my library card",
    "Return the library book and close its loan",
    "Reserve a library book that is on loan",
    "Show my book loans at the library",
]
ALARMS = [
    "Set an alarm clock for six",
    "Delete every alarm of my bedroom clock",
    "Please change the clock alarm to eight",
    "Disable alarm number 3 of the clock",
    "Stop this alarm clock now",
    "Add one more alarm to the kitchen clock",
]


def written(tmp_path, texts):
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps({"query": text}) + "\n" for text in texts))
    return file


def test_two_kinds_of_requests_are_two_themes(tmp_path):
    reading = read_task_set(written(tmp_path, [*LOANS, *ALARMS]))
    assert [set(source.requests) for source in reading.sources] in (
        [set(LOANS), set(ALARMS)],
        [set(ALARMS), set(LOANS)],
    )
    names = {source.name for source in reading.sources}
    assert any("loan" in name or "book" in name for name in names) and any("alarm" in name for name in names)
    assert {source.kind for source in reading.sources} == {"tasks"}
    assert {(source.origin, source.licence) for source in reading.sources} == {("tasks.jsonl", None)}


def test_every_request_is_in_a_theme_or_left_out_with_a_reason(tmp_path):
    texts = [*LOANS, *ALARMS, "Who wrote Emma?", "Write a poem about books.", LOANS[0], ALARMS[1] + "."]
    reading = read_task_set(written(tmp_path, texts))
    assert reading.read == len(texts) == sum(len(one.requests) for one in reading.sources) + len(reading.left_out)
    assert reading.reasons == {
        "says the same as another": 2,
        "a question that names no record of a person": 1,
        "makes or works out something": 1,
    }


def test_small_themes_are_left_out(tmp_path):
    texts = [*LOANS, *ALARMS, "Refund the parking ticket of the red van"]
    reading = read_task_set(written(tmp_path, texts), fewest=4)
    small = [one for one in reading.left_out if one.reason == "its theme has fewer than 4 requests"]
    assert reading.read == sum(len(one.requests) for one in reading.sources) + len(small)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["Who wrote Emma?", "Tell a joke"], "none of 2 requests needs a state"),
        (["Cancel my order"], "no theme has 3 requests; only 1 different ones need a state"),
    ],
    ids=["nothing stateful", "too few"],
)
def test_a_set_with_nothing_usable_is_refused(tmp_path, texts, message):
    with pytest.raises(InputError, match=message):
        read_task_set(written(tmp_path, texts))


def test_the_licence_beside_the_file_is_recorded(tmp_path):
    (tmp_path / "LICENSE").write_text("MIT License\n\nCopyright 2026 somebody")
    assert read_task_set(written(tmp_path, [*LOANS, *ALARMS])).sources[0].licence == "MIT"


def test_requests_of_one_kind_are_one_theme():
    texts = [f"I want to {verb} the {thing} of order {n} because it is {why}" for n, (verb, thing, why) in enumerate(
        [("return", "lamp", "broken"), ("exchange", "shoes", "small"), ("cancel", "boots", "late"),
         ("return", "tablet", "slow"), ("refund", "puzzle", "wrong"), ("exchange", "jacket", "red")]
    )]  # fmt: skip
    assert len(cluster_requests(texts)) == 1


def test_names_and_quotations_tell_nothing_of_the_theme():
    words = find_content_words("Please book an appointment with Dr. Okafor about 'the blue folder' in Lisbon")
    assert words == ["appointment"]


def test_repeats_name_the_first_of_their_kind():
    texts = [
        "cancel my order of the desk lamp please",
        "renew my library card",
        "cancel my order of the desk lamp please!",
    ]
    assert find_repeats(texts) == {2: 0}


class Voice:
    """A model at the network's edge: it answers from what it is asked."""

    name = "voice"

    def __init__(self, spoil=()):
        self.asked = []
        self.spoil = spoil

    async def complete(self, request):
        self.asked.append(request)
        lines = [line for line in request.messages[1].content.splitlines() if line[:1].isdigit()]
        said = []
        for line in lines:
            number, _, text = line.partition(". ")
            loan = "loan" in text
            said.append({
                "number": int(number), "stateful": loan or "alarm" in text,
                "environment": ("library loans" if loan else "alarm clocks") if loan or "alarm" in text else "",
                "summary": "Keeps records." if loan or "alarm" in text else "", "reason": "plain enough",
            })  # fmt: skip
        text = "I would rather not." if len(self.asked) in self.spoil else json.dumps({"requests": said})
        return ChatReply(message=Message(role="assistant", content=text), usage=Usage(requests=1), model=self.name)

    async def close(self):
        """Nothing to close."""


async def test_a_model_decides_in_place_of_words(tmp_path):
    model = Voice()
    file = written(tmp_path, [*LOANS, *ALARMS, "Who wrote Emma?"])
    reading = await read_task_set_with_model(model, Prompts(), file, batch=5)
    assert {source.name: len(source.requests) for source in reading.sources} == {"library loans": 6, "alarm clocks": 6}
    assert reading.reasons == {"the model sees no state": 1}
    assert "library loans" in model.asked[1].messages[0].content


async def test_a_batch_without_an_answer_is_left_out_under_its_own_reason(tmp_path):
    reading = await read_task_set_with_model(
        Voice(spoil=(1, 2, 3)), Prompts(), written(tmp_path, [*LOANS, *ALARMS]), batch=6
    )
    assert [source.name for source in reading.sources] == ["alarm clocks"]
    assert reading.reasons == {"no usable answer of the model": 6}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not there")
def test_real_dialogues_give_themes_and_media_requests_hardly_any():
    dialogues = read_task_set(SHARED / "apibank" / "dialogues.jsonl")
    assert 8 <= len(dialogues.sources) <= 25
    assert any("appointment" in source.name for source in dialogues.sources)
    media = read_task_set(SHARED / "taskbench_multimedia" / "requests.jsonl")
    assert sum(len(source.requests) for source in media.sources) < 0.03 * media.read
