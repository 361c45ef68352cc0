"""JSON with a seal: whatever was changed is found; numbers that no float holds, and endless files, are not taken."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from doxa.errors import BrokenFile
from doxa.storage.json_text import first_bad_number, has_seal, parse_json, read_bounded, to_sealed_bytes

FIELDS = {"name": 'Ω \u2028 \ud800 \x00 "quoted"', "numbers": [1, 2.5e-300, -7], "table": {"a": None, "b": True}}


@pytest.mark.parametrize("ensure_ascii", [False, True])
def test_fields_come_back_and_their_seal_holds(ensure_ascii: bool) -> None:
    raw = to_sealed_bytes(FIELDS, ensure_ascii)
    assert has_seal(raw)
    content = parse_json(raw)
    assert len(content.pop("seal")) == 64
    assert content == FIELDS
    assert to_sealed_bytes(parse_json(raw), ensure_ascii) == raw, "an older seal is not a field"


def test_whatever_was_changed_is_found() -> None:
    raw = to_sealed_bytes(FIELDS)
    for k in range(len(raw)):
        for bit in range(8):
            assert not has_seal(raw[:k] + bytes([raw[k] ^ (1 << bit)]) + raw[k + 1 :])
        assert not has_seal(raw[:k])
        assert not has_seal(raw[k + 1 :])
    for other in (raw + b"\n", b"\n" + raw, raw + raw, raw.upper(), json.dumps(json.loads(raw)).encode()):
        assert not has_seal(other)


def test_what_is_no_number_is_no_json_and_nothing_like_it_is_written() -> None:
    for word in ("NaN", "Infinity", "-Infinity"):
        with pytest.raises(ValueError, match="no number in JSON"):
            parse_json(f'{{"a": {word}}}'.encode())
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_sealed_bytes({"a": math.nan})


def test_numbers_larger_than_any_are_named_by_their_field() -> None:
    for text in ("1e400", "-1e400", "9" * 5000, "-" + "9" * 41):
        value = parse_json(f'{{"a": [{{"b": 1}}, {{"b": {text}}}]}}'.encode())
        assert "'a[1].b'" in str(first_bad_number(value))
    assert first_bad_number({"a": [1, 10**39, 1e308, True, None, "9" * 5000]}) is None


def test_the_first_of_several_is_named() -> None:
    assert "'a[0]'" in str(first_bad_number({"a": [math.inf, math.inf], "b": math.nan}))


def test_a_file_without_an_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (Path("/dev/zero"), tmp_path / "fifo", tmp_path, tmp_path / "nothing"):
        with pytest.raises(BrokenFile, match="is not a file"):
            read_bounded(path)
    (tmp_path / "large").write_bytes(b"x" * 11)
    assert read_bounded(tmp_path / "large", 11) == b"x" * 11
    with pytest.raises(BrokenFile, match="larger than 10 bytes"):
        read_bounded(tmp_path / "large", 10)
