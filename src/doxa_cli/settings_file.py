"""A TOML file of settings, read with suspicion: its size, its depth, and what kind each value is of."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from doxa_cli.words import BEYOND, NO_NAME, is_beyond_count

MAX_BYTES = 2**20
MAX_PARTS = 64  # of a name with dots, of which a setting has one
# A name of more parts takes tomllib time that grows with the square of their number.
DOTTED = re.compile(rf"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{MAX_PARTS}}}""")
MAX_BRACKETS = 32  # of the words of a setting
EXAMPLE = 'a list such as ["a", "b"]'
NO_TEXT = re.compile("[\0\ud800-\udfff]")


def read_settings_file(path: Path) -> dict[str, Any]:
    """What a TOML file says, name by name."""
    from doxa.errors import BadInput
    from doxa.storage.source import read_bytes

    content = read_bytes(path, MAX_BYTES, "a TOML file of settings for --config")
    try:
        return parse_toml(content.decode("utf-8"))
    except ValueError as error:
        raise BadInput(
            f'{path} is not TOML ({error}); a setting is a line such as epochs = 20 or target = "price"'
        ) from None


def parse_toml(text: str) -> dict[str, Any]:
    """TOML of bounded depth; a ValueError where it is none."""
    if DOTTED.search(text):
        raise ValueError(f"a name has more than {MAX_PARTS} parts with dots between them")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def require_plain(name: str, value: Any, is_path: bool = False, is_name: bool = False) -> None:
    """Refuse a value that no setting has: a date, a table, a list of lists, a number or a text beyond all bounds."""
    from doxa.errors import BadInput

    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, list | tuple | dict):
                raise BadInput(f"the setting {name} holds a list of {_kind(item)}; expected names, as in {EXAMPLE}")
            require_plain(name, item, is_path, is_name)
    elif isinstance(value, str | Path):
        if (NO_NAME if is_path else NO_TEXT).search(str(value)):
            raise BadInput(f"the setting {name} is no text: {str(value)[:60]!a} holds a NUL or half a character")
        if not is_name and str(value).count("(") > MAX_BRACKETS:
            raise BadInput(f"the setting {name} has more than {MAX_BRACKETS} brackets; members nest less deeply")
    elif isinstance(value, int):
        if is_beyond_count(name, value):
            raise BadInput(f"the setting {name} {BEYOND}")
    elif not (value is None or isinstance(value, float)):
        raise BadInput(f"the setting {name} is {_kind(value)}; expected text, a number, true or false, or {EXAMPLE}")


def _kind(value: Any) -> str:
    return {"dict": "a table", "list": "a list", "tuple": "a list"}.get(
        type(value).__name__, f"a {type(value).__name__}"
    )
