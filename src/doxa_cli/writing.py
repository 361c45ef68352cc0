"""Files are never overwritten unasked."""

from __future__ import annotations

from pathlib import Path


def require_free(path: Path | None, force: bool, marker: bytes | None = None) -> None:
    """Refuse a path that is taken, unless by force or by a file that begins with a mark of our own."""
    if path is None or not path.exists():
        return
    from doxa.errors import BadInput

    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file to write")
    if force or (marker is not None and marker in path.read_bytes()[:2000]):
        return
    raise BadInput(f"{path} is there already; choose another name, or overwrite it with --force")
