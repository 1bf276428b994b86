"""Documents and lists of domains: what is used, what is left out and why, and the licence."""

import json

import pytest

from trajsmith.envgen.sources.documents import MAX_PASSAGE_CHARACTERS, read_documents
from trajsmith.envgen.sources.domains import build_domain_source, read_domains
from trajsmith.envgen.sources.licences import identify_licence
from trajsmith.records import InputError

RULES = (
    "The harbour rents berths to boats. A berth is free from noon on. Every boat pays by its length and by the night."
)


def test_documents_of_all_forms_become_passages(tmp_path):
    folder = tmp_path / "harbour"
    folder.mkdir()
    (folder / "rules.md").write_text(f"---\ntitle: Harbour rules\nlicense: CC BY 4.0\n---\n# Rules\n\n{RULES}")
    (folder / "prices.json").write_text(
        json.dumps({"berths": [{"name": "North quay", "price": 40}, {"name": "South"}]})
    )
    (folder / "page.html").write_text(
        "<html><head><title>Office</title><script>var x = 1</script></head><body><p>The office opens at eight in the "
        "morning.</p><style>p {}</style></body></html>"
    )
    (folder / "photo.png").write_bytes(b"\x89PNG")
    (folder / "empty.txt").write_text("\n")
    reading = read_documents(folder)
    (source,) = reading.sources
    said = " ".join(source.passages)
    assert "A berth is free from noon on." in said and "berths price: 40" in said and "opens at eight" in said
    assert "var x" not in said and "license" not in said
    assert (source.kind, source.name, source.origin, source.licence) == ("documents", "harbour", "harbour", "CC-BY-4.0")
    assert source.summary == "Office"
    assert {one.what: one.reason for one in reading.left_out} == {
        "empty.txt": "empty",
        "photo.png": "neither .md nor .txt nor .html nor .htm nor .json",
    }
    assert reading.read == 5


def test_passages_are_bounded(tmp_path):
    (tmp_path / "long.txt").write_text(" ".join(f"Sentence {n} of the long text." for n in range(600)) + "x" * 3000)
    passages = read_documents(tmp_path).sources[0].passages
    assert len(passages) > 10 and max(map(len, passages)) <= MAX_PASSAGE_CHARACTERS


def test_statements_that_contradict_each_other_are_left_out_of_both(tmp_path):
    (tmp_path / "a.md").write_text(f"{RULES} A booking can be cancelled within 14 days of payment.")
    (tmp_path / "b.md").write_text("Prices hold for a year here. A booking can be cancelled within 30 days of payment.")
    (tmp_path / "c.md").write_text("Boats may not be left alone over night. The office is closed on every Sunday.")
    (tmp_path / "d.md").write_text("Boats may be left alone over night. The crane lifts boats up to ten tons.")
    reading = read_documents(tmp_path)
    wrong = [one for one in reading.left_out if one.reason.startswith("contradictory")]
    assert {one.what for one in wrong} == {"a.md and b.md", "c.md and d.md"}
    assert "within 14 days" in wrong[0].reason and "within 30 days" in wrong[0].reason
    said = " ".join(reading.sources[0].passages)
    assert "cancelled within" not in said and "left alone" not in said and "The crane lifts" in said


def test_numbers_in_words_contradict_too_and_what_is_doubted_is_no_summary(tmp_path):
    (tmp_path / "a.md").write_text("A member may borrow five scores at a time. Loans of scores last for 28 days.")
    (tmp_path / "b.md").write_text("A member may borrow three scores at a time. Scores are lent to members only.")
    reading = read_documents(tmp_path)
    assert [one.what for one in reading.left_out] == ["a.md and b.md"]
    assert reading.sources[0].summary == "Loans of scores last for 28 days."


def test_rows_of_one_document_do_not_contradict_each_other(tmp_path):
    (tmp_path / "a.md").write_text(
        "The berth of a small boat costs 10 a night. The berth of a small boat costs 12 a night."
    )
    assert read_documents(tmp_path).left_out == ()


def test_licences_that_differ_are_told(tmp_path):
    (tmp_path / "LICENSE").write_text("Apache License\nVersion 2.0, January 2004")
    (tmp_path / "a.md").write_text(f"---\nlicence: MIT License\n---\n{RULES}")
    reading = read_documents(tmp_path)
    assert reading.sources[0].licence == "Apache-2.0"
    assert [one.reason for one in reading.left_out] == ["contradictory: documents state Apache-2.0, MIT"]


def test_an_unknown_licence_is_its_first_line():
    assert identify_licence("\n  House rules of the harbour \nmore") == "House rules of the harbour"
    assert identify_licence(" \n") is None


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no document to use .* it is empty"),
        ({"a.txt": "short"}, "a.txt: fewer than 40 letters"),
        ({"a.json": "{"}, "a.json: no JSON"),
        ({"a.pdf": "x"}, "a.pdf: neither .md"),
    ],
    ids=["nothing", "too short", "broken", "other form"],
)
def test_a_folder_with_nothing_usable_is_refused(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_documents(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="no such folder of documents"):
        read_documents(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("domains.txt", "# ours\n- Library loans: Books and holds.\nParking\n"),
        ("domains.yaml", "- {name: Library loans, summary: Books and holds.}\n- Parking\n"),
        ("domains.yml", "domains:\n  - Library loans: Books and holds.\n"),
        ("domains.json", '[{"name": "Library loans", "description": "Books and holds."}, "Parking"]'),
        ("domains.jsonl", '{"name": "Library loans", "description": "Books and holds."}\n"Parking"\n'),
    ],
    ids=["text", "yaml", "yaml of pairs", "json", "jsonl"],
)
def test_lists_of_domains(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    if name.endswith(".yml"):
        with pytest.raises(InputError, match="no domain in it: no name"):
            read_domains(tmp_path / name)
        return
    first, second = read_domains(tmp_path / name).sources
    assert (first.name, first.summary, first.origin) == ("Library loans", "Books and holds.", name)
    assert (second.name, second.summary, second.kind) == ("Parking", "", "domain")


def test_domains_named_twice_or_not_at_all_are_left_out(tmp_path):
    (tmp_path / "d.txt").write_text(f"Parking\nparking\n---\n{'x' * 90}\n")
    reading = read_domains(tmp_path / "d.txt")
    assert [source.name for source in reading.sources] == ["Parking"]
    reasons = [one.reason.partition(";")[0] for one in reading.left_out]
    assert reasons == ["named twice", "a name has at most 80 letters"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("d.yaml", "a: [1", "no YAML"),
        ("d.yaml", "17", "no list of domains"),
        ("d.txt", "", "no domain in it: it is empty"),
    ],
    ids=["broken", "a number", "empty"],
)
def test_unusable_lists_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_domains(tmp_path / name)


def test_a_name_without_letters_is_refused():
    with pytest.raises(InputError, match="no name"):
        build_domain_source(" 42 ")
