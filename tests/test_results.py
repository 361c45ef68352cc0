"""Results on disk: whole or not at all, read with suspicion; seeds combined."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest

from doxa.errors import BadInput, BrokenFile
from doxa.results import combine, first_problem, read_result, stamp, write_result
from for_storage import overwrite

RESULT = {
    "name": "belief",
    "data": {"name": "digits", "rows": 3, "task": "classification"},
    "scores": {"nll": {"value": 0.5, "error": 0.1, "over": "draws", "count": 50}},
    "reliability": {"confidence": [0.5, None], "accuracy": [0.4, None], "count": [10, 0]},
}


def test_round_trip(tmp_path):
    path = tmp_path / "new" / "result.json"
    write_result(path, RESULT)
    result = read_result(path)
    assert {key: result[key] for key in RESULT} == RESULT
    assert result["kind"] == "doxa result"
    before = path.read_bytes()
    write_result(path, result)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path], "nothing is left beside it"


def test_what_json_lacks_is_null_and_arrays_are_lists(tmp_path):
    scores = {"a": {"value": math.nan, "error": np.float32(0.5)}, "b": {"value": -math.inf, "error": None}}
    write_result(tmp_path / "r", {"name": "x", "scores": scores, "settings": {"w": np.arange(3), "t": (1, 2)}})
    result = read_result(tmp_path / "r")
    assert result["scores"]["a"] == {"value": None, "error": 0.5}
    assert result["scores"]["b"]["value"] is None
    assert result["settings"] == {"w": [0, 1, 2], "t": [1, 2]}
    assert "NaN" not in (tmp_path / "r").read_text()


def test_names_of_any_kind_come_back(tmp_path):
    name = 'quotes " \\ \n \u202e 🧠 \ud800 \x00 שלום'
    write_result(tmp_path / "r", {**RESULT, "name": name})
    assert read_result(tmp_path / "r")["name"] == name


@pytest.mark.parametrize("content", [{}, {"name": "x"}, {"name": "x", "scores": 3}, {**RESULT, "settings": object()}])
def test_what_is_no_result_is_not_written(content, tmp_path):
    with pytest.raises(BadInput):
        write_result(tmp_path / "r", content)
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    write_result(tmp_path / "r", RESULT)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BrokenFile, match="No space"):
        write_result(tmp_path / "r", {**RESULT, "name": "new"})
    monkeypatch.undo()
    assert read_result(tmp_path / "r")["name"] == "belief"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_missing_file(tmp_path):
    with pytest.raises(BadInput, match="there is no file"):
        read_result(tmp_path / "nowhere.json")
    with pytest.raises(BadInput, match="is a folder; expected a result"):
        read_result(tmp_path)


BROKEN = {
    "empty": (b"", "damaged, cut short"),
    "binary": (b"\xff\xfe\x00\x80", "damaged, cut short"),
    "deep": (b"[" * 100_000, "damaged, cut short"),
    "a list": (b"[1, 2]", "no Doxa result"),
    "other kind": (b'{"kind": "recipe"}', "'recipe'"),
    "newer": (b'{"kind": "doxa result", "version": 9}', "upgrade Doxa"),
    "no name": (b'{"kind": "doxa result", "version": 1, "scores": {}}', "no name"),
    "text for a number": (
        b'{"kind": "doxa result", "version": 1, "name": "x", "scores": {"nll": {"value": "<b>"}}}',
        "scores",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named_and_explained(case, tmp_path):
    content, message = BROKEN[case]
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(BrokenFile, match=message) as raised:
        read_result(tmp_path / "r.json")
    assert "r.json" in str(raised.value)


def test_a_truncated_file_at_any_place(tmp_path):
    write_result(tmp_path / "r", RESULT)
    content = (tmp_path / "r").read_bytes().rstrip()
    for size in range(0, len(content), 7):
        (tmp_path / "r").write_bytes(content[:size])
        with pytest.raises(BrokenFile):
            read_result(tmp_path / "r")


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("reliability", {"confidence": [0.5], "accuracy": [0.5], "count": [1, 2]}),
        ("reliability", {"confidence": [0.5], "accuracy": [0.5], "count": [None]}),
        ("reliability", {"confidence": [0.5], "accuracy": [0.5]}),
        ("entropy", {"edges": [0.0, 1.0], "inside": [1, 2]}),
        ("pruning", {"share": [0.5]}),
        ("band", {"x": [0.0], "mean": [0.0], "lower": ["<b>"], "upper": [1.0]}),
        ("band", {"x": [0.0], "mean": [0.0], "lower": [0.0], "upper": [1.0], "train_x": [1.0]}),
        ("attack", {"radius": [], "accuracy": []}),
        ("intervals", [1]),
        ("unsure", [{"image": [[0.0, 1.0], [0.0]], "label": 1, "probabilities": [1.0]}]),
        ("unsure", [{"image": [], "label": 1, "probabilities": [1.0]}]),
        ("unsure", [{"image": [[0.0]], "label": None, "probabilities": [1.0]}]),
        ("history", [{"nll": "low"}]),
        ("findings", "one"),
        ("settings", []),
    ],
)
def test_a_section_that_makes_no_sense(section, value):
    assert first_problem(RESULT) is None
    assert section.replace("_", " ").split()[0] in str(first_problem({**RESULT, section: value})).replace(
        "its section ", ""
    )


def seed(value: float | None, **sections) -> dict:
    scores = {"nll": {"value": value, "error": 0.01, "over": "draws", "count": 50}}
    return {"name": "belief", "data": {"name": "digits"}, "scores": scores, **sections}


def test_combined_scores_are_means_with_standard_errors():
    values = [0.5, 0.8, 0.2, 0.7]
    score = combine([seed(v) for v in values])["scores"]["nll"]
    assert score["value"] == pytest.approx(np.mean(values))
    assert score["error"] == pytest.approx(np.std(values, ddof=1) / 2)
    assert (score["over"], score["count"]) == ("seeds", 4)


def test_one_seed_cannot_tell_and_an_unknown_value_is_not_averaged_away():
    assert combine([seed(0.5)])["scores"]["nll"] == {"value": 0.5, "error": None, "over": "seeds", "count": 1}
    assert combine([seed(0.5), seed(None)])["scores"]["nll"]["value"] is None


def test_combined_tables_are_pooled_and_curves_averaged():
    first = seed(
        0.1,
        reliability={"confidence": [0.5, None], "accuracy": [1.0, None], "count": [1, 0]},
        entropy={"edges": [0, 1, 2], "inside": [3, 1], "outside": [1, 3]},
        pruning={"share": [0.0, 0.9], "error": [0.1, 0.3]},
        history=[{"nll": 1.0}, {"nll": 0.5}],
        settings={"epochs": 3, "seed": 0},
        stamp={"seeds": [0], "seconds": 2.0, "device": "CPU"},
        findings=["Overconfident: by 5."],
        band={"x": [0.0], "mean": [1.0], "lower": [0.0], "upper": [2.0]},
    )
    second = seed(
        0.3,
        reliability={"confidence": [0.9, 0.8], "accuracy": [0.0, 0.5], "count": [3, 2]},
        entropy={"edges": [0, 1, 2], "inside": [1, 1], "outside": [0, 2]},
        pruning={"share": [0.0, 0.9], "error": [0.1, 0.5]},
        history=[{"nll": 2.0}],
        settings={"epochs": 3, "seed": 1},
        stamp={"seeds": [1], "seconds": 3.0, "device": "CPU"},
        findings=["Overconfident: by 7."],
        band={"x": [0.0], "mean": [9.0], "lower": [0.0], "upper": [2.0]},
    )
    combined = combine([first, second])
    assert combined["reliability"]["count"] == [4, 2]
    assert combined["reliability"]["confidence"] == pytest.approx([0.8, 0.8])
    assert combined["reliability"]["accuracy"] == pytest.approx([0.25, 0.5])
    assert combined["entropy"] == {"edges": [0, 1, 2], "inside": [4, 2], "outside": [1, 5]}
    assert combined["pruning"]["error"] == pytest.approx([0.1, 0.4])
    assert combined["pruning"]["se"] == pytest.approx([0.0, 0.1])
    assert combined["history"] == [{"nll": 1.5}]
    assert combined["settings"] == {"epochs": 3, "seed": [0, 1]}
    assert combined["stamp"] == {"seeds": [0, 1], "seconds": 5.0, "device": "CPU"}
    assert combined["findings"] == ["Overconfident: by 5. (In 2 of 2 seeds; the numbers are those of one.)"]
    assert combined["band"] == first["band"]
    assert first_problem(combined) is None
    json.dumps(combined, allow_nan=False)


def test_a_section_that_not_all_have_is_left_out():
    with_attack = seed(0.1, attack={"radius": [0.0], "accuracy": [1.0]})
    assert "attack" not in combine([with_attack, seed(0.2)])


def test_what_cannot_be_combined():
    with pytest.raises(BadInput, match="nothing"):
        combine([])
    with pytest.raises(BadInput, match="names"):
        combine([seed(0.1), {**seed(0.2), "name": "other"}])
    with pytest.raises(BadInput, match="data"):
        combine([seed(0.1), {**seed(0.2), "data": {"name": "other"}}])
    with pytest.raises(BadInput, match="already"):
        combine([combine([seed(0.1), seed(0.2)]), seed(0.3)])
    with pytest.raises(BadInput, match="none"):
        combine([{}])


def test_a_stamp_says_where_numbers_come_from():
    provenance = stamp({"epochs": 3}, [0, 1], started=0.0)
    assert provenance["settings"] == {"epochs": 3}
    assert provenance["seeds"] == [0, 1]
    assert {"doxa", "torch", "numpy", "python"} <= provenance["versions"].keys()
    assert provenance["seconds"] > 0


def test_no_flip_in_any_byte_is_read(tmp_path):
    path = tmp_path / "r.json"
    write_result(path, RESULT)
    content = path.read_bytes()
    for k in range(len(content)):
        for bit in range(8):
            overwrite(path, content[:k] + bytes([content[k] ^ (1 << bit)]) + content[k + 1 :])
            with pytest.raises(BrokenFile, match=r"r\.json"):
                read_result(path)


def test_what_was_added_or_written_otherwise_is_not_read(tmp_path):
    write_result(tmp_path / "r.json", RESULT)
    content = (tmp_path / "r.json").read_bytes()
    for other in (content + b"\n", b" " + content, content.replace(b"\n", b"\r\n"), content[:-1]):
        (tmp_path / "r.json").write_bytes(other)
        with pytest.raises(BrokenFile, match="does not match its seal"):
            read_result(tmp_path / "r.json")


def test_results_of_format_1_have_no_seal_and_are_read(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps({"kind": "doxa result", "version": 1, **RESULT}, indent=2))
    result = read_result(tmp_path / "r.json")
    assert {key: result[key] for key in RESULT} == RESULT
    write_result(tmp_path / "s.json", result)
    assert json.loads((tmp_path / "s.json").read_text())["version"] == 2
    assert read_result(tmp_path / "s.json") == result


def test_what_is_read_may_be_changed_and_written_again(tmp_path):
    write_result(tmp_path / "a.json", RESULT)
    write_result(tmp_path / "b.json", {**read_result(tmp_path / "a.json"), "name": "other"})
    assert read_result(tmp_path / "b.json")["name"] == "other"
    assert combine([read_result(tmp_path / "a.json")])["name"] == "belief"


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


HOSTILE = {
    "infinite": ({"scores": {"nll": {"value": "1e400"}}}, "scores.nll.value"),
    "minus infinite": ({"history": [{"nll": "-1e999"}]}, "history[0].nll"),
    "digits": ({"scores": {"nll": {"value": "9" * 5000}}}, "scores.nll.value"),
    "digits of a count": ({"scores": {"nll": {"value": "1", "count": "9" * 30}}}, "nll"),
    "a negative error": ({"scores": {"nll": {"value": "1", "error": "-1"}}}, "nll"),
    "a list of what an error is over": ({"scores": {"nll": {"value": "1", "over": "[1]"}}}, "nll"),
    "digits of rows": ({"data": {"rows": "9" * 5000}}, "data.rows"),
    "digits of a setting": ({"settings": {"seed": "-" + "9" * 5000}}, "settings.seed"),
    "words for rows": ({"data": {"rows": '"many"'}}, "rows"),
    "a number for a name": ({"data": {"name": "3"}}, "name"),
    "a number for classes": ({"data": {"classes": "3"}}, "classes"),
    "words for seconds": ({"stamp": {"seconds": '"long"'}}, "seconds"),
    "words for seeds": ({"stamp": {"seeds": '"long"'}}, "seeds"),
    "truth for a score": ({"scores": {"nll": {"value": "true"}}}, "scores"),
    "deep": ({"settings": {"a": json.dumps(nested(200))}}, "settings.a"),
}


def to_json(value):
    """Like json.dumps, but text is taken for JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {to_json(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(to_json, value)) + "]" if isinstance(value, list) else value


@pytest.mark.parametrize("case", HOSTILE)
def test_what_no_result_holds_is_refused_by_the_fields_name(case, tmp_path):
    sections, field = HOSTILE[case]
    content = {"kind": '"doxa result"', "version": "1", "name": '"x"', "scores": {}, **sections}
    (tmp_path / "r.json").write_text(to_json(content))
    with pytest.raises(BrokenFile) as raised:
        read_result(tmp_path / "r.json")
    assert field in str(raised.value)
    assert "r.json" in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("version", [b"0", b"-1", b"true", b'"2"', b"1.0", b"null", b"9" * 5000])
def test_a_version_that_there_never_was(version, tmp_path):
    (tmp_path / "r.json").write_bytes(b'{"kind": "doxa result", "name": "x", "scores": {}, "version": %s}' % version)
    with pytest.raises(BrokenFile, match="version"):
        read_result(tmp_path / "r.json")


def test_what_is_too_deep_is_not_written(tmp_path):
    for levels in (100, 100_000):
        with pytest.raises(BadInput, match="nested deeper than 64 levels"):
            write_result(tmp_path / "r", {**RESULT, "settings": {"a": nested(levels)}})
    assert not list(tmp_path.iterdir())


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    write_result(tmp_path / "r.json", RESULT)

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(BrokenFile, match=r"cannot be read \(Permission denied\); check its permissions"):
        read_result(tmp_path / "r.json")
