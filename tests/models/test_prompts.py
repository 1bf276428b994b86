"""Prompts are checked before any work; every fault is one line that says what to do."""

import pytest

from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.querygen import PERSONA, REFINE, WRITE
from trajsmith.records import InputError
from trajsmith.usersim import AGENT, USER
from trajsmith.verify import JUDGE

SPEC = PromptSpec("usersim/user", {"name": "Ann", "facts": [{"said": "blue"}]})
HEAD = "{#- Purpose: to test. Source: none. Variables: name, facts. -#}\n".replace(". ", ".\n")
GOOD = HEAD + "{% block system %}You are {{ name }}.{% for one in facts %} {{ one.said }}{% endfor %}{% endblock %}"


@pytest.fixture
def own(tmp_path):
    def write(text):
        (tmp_path / "usersim").mkdir(exist_ok=True)
        (tmp_path / "usersim" / "user.md.j2").write_text(text)
        return Prompts(tmp_path)

    return write


@pytest.mark.parametrize("spec", [PERSONA, WRITE, REFINE, AGENT, USER, JUDGE], ids=lambda spec: spec.name)
def test_our_prompts_are_in_order(spec):
    prompt = Prompts().get(spec)
    assert len(prompt.version) == 12
    assert prompt.source
    assert all(message.content and "Purpose:" not in message.content for message in prompt.messages(**spec.example))


@pytest.mark.parametrize("spec", [PERSONA, WRITE, REFINE, USER, JUDGE], ids=lambda spec: spec.name)
def test_the_case_stands_last_so_that_prefixes_are_shared(spec):
    """Another person, the same environment: the system message is the same, so a server keeps it."""
    prompt = Prompts().get(spec)
    one, other = (prompt.messages(**spec.example | {"name": name}) for name in ("Ann", "Bob"))
    assert one[0] == other[0]
    assert [message.role for message in one] == ["system", "user"]


def test_a_prompt_of_ones_own_goes_before_ours_and_has_another_version(own):
    mine = own(GOOD).get(SPEC)
    assert mine.text(name="Bo", facts=[]) == "You are Bo."
    assert mine.version != Prompts().get(USER).version


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD.replace("{{ name }}", "{{ nmae }}"), "it uses nmae, which is not given: use facts, name"),
        (GOOD.replace("one.said", "one.sayd"), "has no attribute 'sayd'"),
        (GOOD.replace("name, facts", "name"), "its header must list the variables that it uses: facts, name"),
        (GOOD.replace("Purpose", "Porpoise"), "its first comment must say Purpose"),
        (GOOD.replace("block system", "block systm"), "no block named system or user"),
        (GOOD.replace("endfor", "endfro"), "unknown tag"),
    ],
    ids=["misspelt", "misspelt inside", "not in the header", "no header", "no block", "no template"],
)
def test_a_broken_prompt_is_one_line(own, text, says):
    with pytest.raises(InputError, match=says) as error:
        own(text).get(SPEC)
    assert "\n" not in str(error.value)
    assert "user.md.j2" in str(error.value)


@pytest.mark.parametrize(
    ("attack", "says"),
    [
        ("{{ name.__class__.__mro__[-1].__subclasses__() }}", "only methods that read may be called"),
        ("{{ name.__class__ }}", "access to attribute '__class__' of 'str'"),
        ("{{ self.__init__.__globals__.__builtins__.exec(code) }}", "only methods that read may be called"),
        ("{{ self.__init__ }}", "self is not for such templates"),
        ("{{ cycler.__init__.__globals__.os.system(code) }}", "only methods that read may be called"),
        ("{{ '{0.__class__}'.format(name) }}", "only methods that read may be called"),
        ("{{ facts.append(1) }}", "only methods that read may be called"),
        ("{{ range(10 ** 9) }}", "only methods that read may be called"),
        ("{% set a = name ~ name %}{% set a = a ~ a %}{{ a }}", "a name is set to a text that grows"),
        ("{% include '/etc/passwd' %}", "include is not for such templates"),
        ("{{ '%999999999d'|format(1) }}", "widths below 100"),
        ("{{ 1 / 0 }}", "division by zero"),
    ],
    ids=[
        "subclasses",
        "class",
        "builtins",
        "self",
        "os.system",
        "format",
        "mutation",
        "range",
        "doubled",
        "include",
        "width",
        "arithmetic",
    ],
)
def test_a_prompt_of_ones_own_runs_no_code(own, tmp_path, attack, says):
    attack = attack.replace("code", f"'touch {tmp_path}/ran'")
    with pytest.raises(InputError, match=r"prompt .*user\.md\.j2") as caught:
        own(GOOD.replace("{{ name }}", "{{ name }}" + attack)).get(SPEC)
    assert says in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        Prompts(tmp_path / "nowhere")
