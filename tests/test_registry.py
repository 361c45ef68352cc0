"""Names of members: which a room has, which it may be given, and what is said of the others."""

from __future__ import annotations

import compileall
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from doxa import learners, noise, optimisers, priors
from doxa.errors import BadInput

ROOM = """
from __future__ import annotations
from functools import partial
from math import prod
from {room}.narrow import Narrow as narrow, Shape, _hidden
from {room}.wide import wide as wide
from doxa import registry

lower = 3
TABLE = registry.members(globals())
EXAMPLES = registry.examples(__name__, __path__)
"""
FILES = {
    "narrow": "class Narrow: pass\nclass Shape: pass\ndef _hidden(): pass\nEXAMPLES = {'narrow': (1,)}\n",
    "wide": "wide = object()\nEXAMPLES = {'wide': (2,)}\n",
}


def write_room(folder: Path, room: str, files: dict[str, str]) -> None:
    (folder / room).mkdir()
    (folder / room / "__init__.py").write_text(ROOM.format(room=room))
    for name, source in files.items():
        (folder / room / f"{name}.py").write_text(source)


def import_room(folder: Path, room: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(folder)
    try:
        return importlib.import_module(room)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == room]:
            del sys.modules[name]


def test_the_members_of_a_room_are_imported_from_its_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_room(tmp_path, "room_with_source", FILES)
    room = import_room(tmp_path, "room_with_source", monkeypatch)
    assert {"narrow": room.narrow, "wide": room.wide} == room.TABLE
    assert room.EXAMPLES == {"narrow": (1,), "wide": (2,)}


def test_a_room_without_its_source_has_the_same_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_room(tmp_path, "room_of_bytecode", FILES)
    assert compileall.compile_dir(tmp_path, quiet=1, legacy=True)
    for source in [*tmp_path.rglob("*.py")]:
        source.unlink()
    room = import_room(tmp_path, "room_of_bytecode", monkeypatch)
    assert {"narrow": room.narrow, "wide": room.wide} == room.TABLE


def test_examples_of_one_name_in_two_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_room(tmp_path, "room_of_twins", FILES | {"wide": "wide = 1\nEXAMPLES = {'narrow': (2,)}\n"})
    with pytest.raises(BadInput, match=r"two files of room_of_twins have EXAMPLES of narrow, wide\.py is one of them"):
        import_room(tmp_path, "room_of_twins", monkeypatch)


@pytest.mark.parametrize(
    ("room", "name", "member", "message"),
    [
        (priors, 3, priors.gaussian, "3 is no name for a member: use lower-case letters, digits and _"),
        (priors, None, priors.gaussian, "None is no name for a member"),
        (priors, "none", priors.gaussian, "the name 'none' is read as a value wherever it is written; choose another"),
        (priors, "true", priors.gaussian, "the name 'true' is read as a value"),
        (priors, "false", priors.gaussian, "the name 'false' is read as a value"),
        (priors, "nan", priors.gaussian, "the name 'nan' is read as a value"),
        (priors, "mine", priors.gaussian(), r"'mine' must name a class or a function that makes the member; got Gauss"),
        (noise, "mine", object(), "'mine' must name an object of class Noise; got <object"),
        (noise, "mine", noise.Noise, "'mine' must name an object of class Noise; got <class"),
        (learners, "auto", learners.point, "the name 'auto' means one of Doxa's own wherever it is written"),
        (learners, "search", learners.point, "the name 'search' means one of Doxa's own"),
        (learners, "ensemble", learners.point, "the name 'ensemble' is taken by"),
        (optimisers, "adamw", optimisers.sgd, "the name 'adamw' means one of Doxa's own"),
    ],
)
def test_what_no_words_could_reach_is_refused(room: Any, name: Any, member: Any, message: str) -> None:
    before = dict(room.TABLE)
    with pytest.raises(BadInput, match=message):
        room.register(name, member)
    assert before == room.TABLE


def test_a_noise_is_registered_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "TABLE", dict(noise.TABLE))
    mine = noise.Noise("mine")
    noise.register("mine", mine)
    assert noise.TABLE["mine"] is mine
