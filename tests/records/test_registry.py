"""Registries: names without imports, one thing per name, and errors that name their source."""

import sys

import pytest

from trajsmith.records import InputError, Registry


def make_registry(tmp_path, monkeypatch, **modules):
    """A registry over a package with these modules, by their text."""
    package = tmp_path / "kites"
    package.mkdir()
    registry = "from trajsmith.records import Registry\n\nKITES = Registry('kites', __name__)\n"
    (package / "__init__.py").write_text(registry)
    for name, text in modules.items():
        (package / f"{name}.py").write_text(f"from kites import KITES\n{text}\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "kites"]:
        monkeypatch.delitem(sys.modules, name)
    from kites import KITES

    return KITES


def test_names_are_listed_without_an_import(tmp_path, monkeypatch):
    kites = make_registry(tmp_path, monkeypatch, delta="KITES.register('delta')(1)", box="1 / 0", _shared="")
    assert kites.names() == ("box", "delta")
    assert not [name for name in sys.modules if name.startswith("kites.")]
    assert kites.get("delta") == 1


def test_what_cannot_be_loaded_is_named_and_the_others_work(tmp_path, monkeypatch, caplog):
    kites = make_registry(tmp_path, monkeypatch, delta="KITES.register('delta')(1)", box="1 / 0", none="")
    with pytest.raises(InputError, match=r"kite 'box' of kites.box \(trajsmith\) cannot be loaded: ZeroDivisionError"):
        kites.get("box")
    with pytest.raises(InputError, match="the module registers no 'none'"):
        kites.get("none")
    assert kites.load_all() == {"delta": 1}
    assert len(caplog.messages) == 2


def test_a_program_registers_a_name_of_its_own_and_may_do_so_again():
    kites = Registry("kites", {})
    assert kites.register("roller")(print) is print
    kites.register("roller")(len)
    assert (kites.names(), kites.get("roller")) == (("roller",), len)
    with pytest.raises(InputError, match=r'no kite named .rolller. \(did you mean "roller"\?\); there are: roller'):
        kites.get("rolller")


def test_a_name_of_two_modules_is_refused_with_both(tmp_path, monkeypatch):
    kites = make_registry(tmp_path, monkeypatch, delta="KITES.register('delta')(1)")
    kites.register("delta")(2)
    with pytest.raises(InputError, match=rf"two kites are named 'delta'.*kites.delta \(trajsmith\) and {__name__}"):
        kites.get("delta")
