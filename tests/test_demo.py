"""The demo, cut short: one seed, one epoch."""

from __future__ import annotations

import json

import pytest
import torch

from doxa import demo
from doxa.demo import evaluate
from doxa.demo.run import _require_demo_folder as require_demo_folder
from doxa.errors import BadInput
from doxa.results import read_result


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder, messages, threads = tmp_path_factory.mktemp("demo") / "out", [], torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "DRAWS", 5)
        results = demo.run(folder, messages.append, seeds=(0,), epochs=1, cores=1)
    assert torch.get_num_threads() == threads
    return folder, results, messages


def test_it_writes_its_results_and_a_page(ran):
    folder, results, messages = ran
    assert {path.name for path in folder.iterdir()} == {demo.PAGE, *demo.FILES.values()}
    for (data, name), file in demo.FILES.items():
        result = read_result(folder / file)
        assert (result["data"]["name"], result["name"]) == (data, name)
        assert any(data in message and name in message for message in messages)
    assert [(r["data"]["name"], r["name"]) for r in results] == list(demo.FILES)
    assert "Content-Security-Policy" in (folder / demo.PAGE).read_text(encoding="utf-8")


def test_every_column_is_there_for_every_contender(ran):
    _, results, _ = ran
    heads, rows = demo.table(results)
    assert heads == ["plain net", "dropout", "belief"]
    assert len(rows) == len(demo.COLUMNS)
    assert all(len(row) == 4 and "–" not in row for row in rows)
    for result in results[:3]:
        assert set(demo.COLUMNS) <= result["scores"].keys()
        assert result["settings"]["rows learned from"] + result["settings"]["rows for validation"] == 1437
        assert result["data"]["rows"] == 360


def test_a_setting_is_chosen_among_those_tried(ran):
    _, results, _ = ran
    for result in results[1:3]:
        assert result["settings"]["learner"] in result["settings"]["chosen among"].split(", ")


def test_the_band_reaches_beyond_the_data(ran):
    _, results, _ = ran
    for result in results[3:]:
        band = result["band"]
        assert (band["x"][0], band["x"][-1]) == (-0.5, 1.5)
        assert 0 <= min(band["train_x"]) < max(band["train_x"]) <= 0.5


def test_it_overwrites_its_own_output_and_nothing_else(ran, tmp_path):
    folder, _, _ = ran
    require_demo_folder(folder)
    (tmp_path / demo.PAGE).write_text("<html>mine</html>")
    with pytest.raises(BadInput, match="was not written by the demo"):
        demo.run(tmp_path, print, seeds=(0,), epochs=1, cores=1)
    assert (tmp_path / demo.PAGE).read_text() == "<html>mine</html>"
    (tmp_path / demo.PAGE).unlink()
    (tmp_path / "digits-belief.json").write_text(json.dumps({"kind": "mine"}))
    with pytest.raises(BadInput, match=r"digits-belief\.json"):
        demo.run(tmp_path, print, seeds=(0,), epochs=1, cores=1)
    with pytest.raises(BadInput, match="is a file"):
        demo.run(tmp_path / "digits-belief.json", print, seeds=(0,))
    with pytest.raises(BadInput, match="seed"):
        demo.run(tmp_path / "new", print, seeds=())
