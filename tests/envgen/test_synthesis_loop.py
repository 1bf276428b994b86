"""The loop with the scripted expert in this process: what is rejected and why, and what is taken up again."""

from expertly import Expert, domain, expert, loop_in

from trajsmith.envgen.synthesis import synthesize_environments
from trajsmith.envgen.synthesis.examination import DraftRunner
from trajsmith.envgen.synthesis.funnel import build_funnel, shorten_reason
from trajsmith.envgen.synthesis.records import Design, EnvironmentDraft, Examination, SynthesisOutcome
from trajsmith.envgen.synthesis.settings import SynthesisSettings
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.records import ModelFault


async def made(loop, *names):
    return await synthesize_environments(loop, [domain(name) for name in names])


async def test_prose_and_sources_without_a_state_are_rejected_with_their_reason(tmp_path):
    prose, useless = await made(loop_in(tmp_path), "idle chatter", "general knowledge")
    assert not prose.accepted and "there is no JSON in the answer" in prose.reasons[0]
    assert prose.reasons[1].startswith("it said: What a charming theme!")
    assert useless.reasons[0].startswith("nothing usable in the source: Questions of knowledge have no records")
    assert (prose.stage, useless.stage) == ("propose", "propose")


async def test_of_two_proposals_of_one_theme_the_second_is_rejected(tmp_path):
    model = Expert(lambda request: no_further(request))
    outcomes = await made(loop_in(tmp_path, model), "score lending", "sheet music desk")
    assert outcomes[1].reasons == ("the same theme as score lending (score_library)",)
    assert outcomes[0].reasons[0].startswith("design: bad_reply: no valid Requirements in 3 answers")


def no_further(request):
    """Proposals of the expert, and prose for all that comes after them."""
    asked = request["messages"][0]["content"]
    return expert.answer(request) if asked.startswith("You propose") else "I have no more ideas."


async def test_code_that_reaches_outside_is_rejected_before_it_runs(tmp_path):
    model = Expert()
    (outcome,) = await made(loop_in(tmp_path, model), "notice board")
    assert outcome.reasons[0].startswith("the code uses names that the sandbox forbids: line 3: imports subprocess")
    assert (outcome.stage, outcome.rounds, shorten_reason(outcome)) == (
        "examine", 0, "the code uses names that the sandbox forbids",
    )  # fmt: skip
    assert not (tmp_path / "environments").exists()
    assert model.asked[-1] == "seeds", "nobody is asked for tests of such code"


HIDDEN = 'getattr(getattr(random, "_" + "os"), "sys" + "tem")("id")\n        return self.state.permits[permit_id]\n'


async def test_what_hides_from_the_look_at_the_text_is_stopped_by_the_sandbox(tmp_path):
    """The text names nothing that is closed; at run time the sandbox's hook says what was reached for."""
    design, draft = await drafted(tmp_path, "parking permits")
    code = draft.code.replace("return self.state.permits[permit_id]\n", HIDDEN, 1)
    assert code != draft.code
    bench = DraftRunner(tmp_path / "hidden", SynthesisSettings(check_starts=1), SandboxSettings())
    exam = await bench.examine(design, EnvironmentDraft(**{**dict(draft), "id": "", "code": code}))
    assert exam.hostile and "the sandbox does not allow os.system" in exam.complaints[0].what


async def drafted(folder, name):
    """Design and last draft that a rejected theme left."""
    loop = loop_in(folder, rounds=1)
    await made(loop, name)
    return loop.store.all("designs", Design)[-1], loop.store.all("drafts", EnvironmentDraft)[-1]


async def test_a_hopeless_draft_is_rejected_after_all_rounds_with_its_evidence(tmp_path):
    loop = loop_in(tmp_path)
    (outcome,) = await made(loop, "parking permits")
    assert (outcome.accepted, outcome.rounds, outcome.stage) == (False, 5, "repair")
    assert outcome.reasons[0] == "5 repairs were not enough"
    told = "\n".join(outcome.reasons)
    assert "rule R1 is not shown to bind" in told and "KeyError: 'P0'" in told and "checker: error, crash" in told
    assert outcome.best in {draft.id for draft in loop.store.all("drafts", EnvironmentDraft)}, (
        "the best version stays in the records"
    )
    assert not (tmp_path / "environments").exists(), "and is saved nowhere else"
    (exam,) = loop.store.all("examinations", Examination)
    crash = next(one for one in exam.complaints if one.kind == "checker" and one.tool == "get_permit")
    assert len(crash.calls) == 2 and "get_permit(" in crash.calls[1] and "breaks: crash: KeyError" in crash.calls[1]


async def test_more_rounds_go_on_where_fewer_ended(tmp_path):
    (outcome,) = await made(loop_in(tmp_path, rounds=1), "parking permits")
    assert (outcome.rounds, outcome.accepted) == (1, False)
    model = Expert()
    (outcome,) = await made(loop_in(tmp_path, model, rounds=2), "parking permits")
    assert (outcome.rounds, model.asked) == (2, ["repair"])


class Out(Expert):
    """A model whose server is out from some stage on."""

    def __init__(self, stage, kind):
        super().__init__()
        self.stage, self.kind = stage, kind

    async def complete(self, request):
        if request.purpose.endswith(f".{self.stage}"):
            raise ModelFault(self.kind, self.name, "no answer")
        return await super().complete(request)


async def test_an_outage_decides_nothing_and_the_next_start_goes_on(tmp_path):
    loop = loop_in(tmp_path, Out("plan", "connection"))
    assert await made(loop, "notice board") == [] and len(loop.undecided) == 1
    model = Expert()
    again = loop_in(tmp_path, model)
    (outcome,) = await made(again, "notice board")
    assert outcome.stage == "examine" and not again.undecided
    assert "propose" not in model.asked, "what is kept is not asked again"


async def test_an_answer_that_nobody_may_give_rejects_the_theme(tmp_path):
    (outcome,) = await made(loop_in(tmp_path, Out("plan", "content_filter")), "notice board")
    assert outcome.reasons == ("design: content_filter: no answer",)


def test_the_funnel_counts_steps_reasons_and_money(tmp_path):
    line = '{"record":"theme_1","purpose":"designer.propose","model":"m","prompt_tokens":10,"cached_tokens":0,'
    line += '"completion_tokens":5,"reasoning_tokens":0,"cost":0.5}\n'
    (tmp_path / "usage.jsonl").write_text(line * 2 + line[:20])
    plain = {"source": "a", "name": "a"}
    outcomes = [
        SynthesisOutcome(theme="theme_1", accepted=True, stage="accept", rounds=2, **plain),
        SynthesisOutcome(theme="theme_2", accepted=False, stage="repair", reasons=("x",), **plain),
        SynthesisOutcome(theme="theme_3", accepted=False, stage="repair", reasons=("x",), semantic=0.5, **plain),
        SynthesisOutcome(
            theme="theme_4", accepted=False, stage="propose", reasons=("nothing usable in the source: y",), **plain
        ),
    ]
    found = build_funnel(outcomes, 1, tmp_path / "usage.jsonl")
    assert list(found.themes.items()) == [
        ("sources", 5), ("proposed", 3), ("designed", 3), ("drafted", 3), ("examined", 2), ("checked", 1),
        ("accepted", 1),
    ]  # fmt: skip
    assert found.rejected == {"x": 2, "nothing usable in the source": 1}
    assert (found.tokens_per_accepted, found.cost_per_accepted, found.requests) == (30, 1.0, 2)


async def test_a_version_that_is_worse_is_put_aside(tmp_path):
    """The first repair breaks the file; the second begins at the better version again."""

    def answer(request):
        said = expert.answer(request)
        asked = request["messages"][1]["content"]
        return said.replace("def make_state(", "def made_state(") if "This is repair 1" in asked else said

    loop = loop_in(tmp_path, Expert(answer), rounds=2)
    (outcome,) = await made(loop, "parking permits")
    first, worse, third = [draft for draft in loop.store.all("drafts", EnvironmentDraft) if draft.tests][:3]
    assert "made_state" in worse.code and "made_state" not in third.code
    assert third.parent == first.id and outcome.best in (first.id, third.id)
