"""Files are never overwritten unasked, and what is no file never."""

from __future__ import annotations

from pathlib import Path

BEGINNING = 2000  # bytes of a file in which a mark of our own is looked for


def require_free(path: Path | None, force: bool, marker: bytes | None = None) -> None:
    """Refuse a path that is taken, unless by force or by a file that begins with a mark of our own."""
    if path is None or not path.exists():
        return
    from doxa.errors import BadInput

    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file to write")
    if not path.is_file():
        raise BadInput(f"{path} is a device or a pipe, which would be replaced; name a file to write")
    if force or (marker is not None and marker in _beginning(path)):
        return
    raise BadInput(f"{path} is there already; choose another name, or overwrite it with --force")


def _beginning(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(BEGINNING)
