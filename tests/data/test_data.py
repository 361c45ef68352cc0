"""The room of data as a whole: every set by name."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from doxa import data
from doxa.data import catalogue
from doxa.data.download import download
from doxa.errors import BadInput, BrokenFile
from for_downloads import Server, send

Real = Callable[[str], list[Path]]
WITH_FILES = [card.name for card in data.cards() if card.files]
WITHOUT = [card.name for card in data.cards() if not card.files]


def test_table_names_every_set() -> None:
    plain = {"digits", "curve", "two_moons", "mnist", "fashion_mnist", "cifar10"}
    plain |= {"mushroom", "ionosphere", "pima_diabetes"}
    assert {name for name in data.TABLE if "/" not in name} == plain
    assert all(data.TABLE[name] is getattr(data, name) for name in plain)
    assert {name.split("/")[0] for name in data.TABLE if "/" in name} == {"uci_regression", "temperature"}


def test_every_set_has_a_card_that_says_all() -> None:
    assert [card.name for card in data.cards()] == list(data.TABLE)
    for card in data.cards():
        assert card == data.card(card.name)
        assert all((card.licence, card.citation, card.home))
        assert re.fullmatch(r"[A-Z].*\.", card.description)
        assert card.rows > 0
        assert card.task in ("classification", "regression", "time series")
        assert card.bytes == sum(file.bytes for file in card.files)
        for file in card.files:
            assert file.url.startswith("https://")
            assert not Path(file.path).is_absolute()
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)


def test_no_two_sets_share_a_file() -> None:
    places = [file.path for card in data.cards() for file in card.files]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("name", [name for name in data.TABLE if name != "cifar10"])  # which its own tests load
def test_card_agrees_with_what_is_loaded(loads: Callable[[str], object], name: str) -> None:
    card, loaded = data.card(name), loads(name)
    if isinstance(loaded, data.Series):
        assert (card.rows, card.shape, card.task) == (len(loaded.values), (1,), "time series")
    elif isinstance(loaded, data.Tabular):
        assert (loaded.name, loaded.task, len(loaded.x)) == (name, card.task, card.rows)
        assert loaded.x.shape[1:] == (len(loaded.columns),)
        assert card.shape == loaded.x.shape[1:] or name == "mushroom"  # whose traits are several columns each
        assert set(loaded.y) == set(range(len(loaded.classes))) or card.task == "regression"
    else:
        assert card.rows == len(loaded.x_train) + len(loaded.x_test)
        assert card.shape == loaded.x_train.shape[1:]
        assert (card.task == "classification") == isinstance(loaded, data.Dataset)


@pytest.mark.parametrize("name", WITH_FILES)
def test_real_files_are_the_published_ones_or_their_known_forms(real: Real, name: str) -> None:
    real(name)
    for file in data.card(name).files:
        path = Path(catalogue.data_folders()[0], file.path)
        if not path.is_file():
            pytest.skip(f"DOXA_DATA holds {name} in another form")
        raw = path.read_bytes()
        assert hashlib.sha256(raw).hexdigest() in file.digests
        if name == "pima_diabetes":  # published without an end to its last line
            raw = raw.removesuffix(b"\n")
        if not name.startswith("temperature/"):  # prepared: less than what is published
            assert len(raw) == file.bytes
            assert hashlib.sha256(raw).hexdigest() == file.sha256
        if path.suffix == ".gz":
            assert file.also == (hashlib.sha256(gzip.decompress(raw)).hexdigest(),)


@pytest.mark.parametrize("digest", [None, "", "abc", "A" * 64, 64 * "g", "0" * 64 + "\n"])
def test_file_without_its_sum_is_no_file_of_a_set(digest: str) -> None:
    with pytest.raises(BadInput, match="set/a needs its SHA-256, 64 hexadecimal digits"):
        data.File("set/a", "https://example.org/a", 1, digest)
    with pytest.raises(BadInput, match="set/a needs its SHA-256"):
        data.File("set/a", "https://example.org/a", 1, "0" * 64, also=(digest,))


@pytest.mark.parametrize("name", WITHOUT)
def test_sets_without_files_need_neither_folder_nor_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOXA_DATA", raising=False)
    assert data.get(name) == data.path(name) == []
    data.load(name)


@pytest.mark.parametrize("name", WITH_FILES)
def test_loading_never_fetches_and_says_what_to_put_where(
    name: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("urllib.request.OpenerDirector.open", None)
    with pytest.raises(BadInput) as caught:
        data.load(name)
    file = data.card(name).files[0]
    assert f"{data_folder}/{file.path}" in str(caught.value)
    assert f"put it there, from {file.url}, or run: doxa data get {name} (" in str(caught.value)
    assert data.path(name) == [data_folder / file.path for file in data.card(name).files]


@pytest.mark.parametrize("ask", [data.load, data.card, data.get, data.path])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mnits", r"did you mean 'mnist'\?"),
        ("Fashion-MNIST", r"did you mean 'fashion_mnist'\?"),
        ("concrete", r"did you mean 'uci_regression/concrete'\?"),
        ("uci_regression/boston", "did you mean 'uci_regression/bostonHousing'"),
        ("temperature", "'temperature/brussels' or 'temperature/rio_de_janeiro' or 'temperature/uccle'"),
        ("xyzzy", "no data set 'xyzzy'; there is: digits, curve"),
        ("", "no data set ''; there is"),
        (None, "no data set None"),
    ],
)
def test_unknown_name_is_refused_with_those_it_may_have_meant(
    ask: Callable[[str], object], name: str, meant: str
) -> None:
    with pytest.raises(BadInput, match=meant) as caught:
        ask(name)
    assert "there is: digits, curve, two_moons, mnist" in str(caught.value)


def test_options_go_to_the_loader() -> None:
    assert len(data.load("two_moons", rows=7).y) == 7
    assert np.array_equal(data.load("curve", seed=3).y_train, data.curve(3).y_train)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("two_moons", "two_moons has no option 'size'; its options are seed, rows, noise"),
        ("mnist", "mnist has no option 'size'; it has none"),
        ("uci_regression/concrete", "has no option 'size'; it has none"),
    ],
)
def test_unknown_option_is_refused(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        data.load(name, size=3)


def test_path_tells_of_files_in_another_form(data_folder: Path) -> None:
    stems = [Path(file.path).stem for file in data.card("mnist").files]
    for stem in stems:
        path = data_folder / "mnist" / stem
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert data.path("mnist") == [data_folder / "mnist" / stem for stem in stems]
    assert data.get("mnist") == data.path("mnist")


@pytest.fixture
def publish(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes], None]:
    """Let these bytes be what is published as a set's only file, on a server of this machine."""
    monkeypatch.setattr(catalogue, "download", functools.partial(download, allow_loopback_http=True))

    def set_up(name: str, raw: bytes) -> None:
        card = data.card(name)
        files = tuple(dataclasses.replace(file, url=f"{server.url}/{number}") for number, file in enumerate(card.files))
        monkeypatch.setitem(catalogue._CARDS, name, dataclasses.replace(card, files=files))
        for number in range(len(files)):
            server.answers[f"/{number}"] = lambda handler: send(handler, raw, len(raw))

    return set_up


Publish = Callable[[str, bytes], None]


def test_fetched_set_is_in_the_named_folder_and_loads(
    real: Real, publish: Publish, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stored,) = real("mushroom")
    publish("mushroom", stored.read_bytes())
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    progress_calls: list[tuple[str, int]] = []
    place = tmp_path / "mushroom" / "agaricus-lepiota.data"
    assert data.get("mushroom", lambda file, done: progress_calls.append((file.path, done))) == [place]
    assert progress_calls[-1] == ("mushroom/agaricus-lepiota.data", 373_704)
    assert len(data.load("mushroom").y) == 8124
    assert data.get("mushroom") == [place]
    assert len(server.requests) == 1  # once: what is there is not fetched again


def test_fetched_set_is_in_the_cache_without_a_named_folder(
    real: Real, publish: Publish, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stored,) = real("ionosphere")
    publish("ionosphere", stored.read_bytes())
    monkeypatch.delenv("DOXA_DATA")
    assert data.get("ionosphere") == data.path("ionosphere") == [cache / "ionosphere" / "ionosphere.data"]
    assert len(data.load("ionosphere").y) == 351


def test_good_files_are_kept_when_another_fails(real: Real, publish: Publish, tmp_path: Path, monkeypatch) -> None:
    stored = real("fashion_mnist")[1].read_bytes()
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    first, second, *_ = data.card("fashion_mnist").files
    publish("fashion_mnist", b"no such clothes")
    (tmp_path / second.path).parent.mkdir()
    (tmp_path / second.path).write_bytes(stored)
    with pytest.raises(BrokenFile, match=f"the server announces 15 bytes, expected {first.bytes}"):
        data.get("fashion_mnist")
    assert [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()] == [stored]


def test_importing_the_room_imports_neither_scikit_learn_nor_pillow() -> None:
    code = "import sys, doxa.data; print([m for m in ('sklearn', 'PIL') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
