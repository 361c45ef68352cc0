"""The error for a name that is none of those known."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from doxa.errors import BadInput


def unknown(kind: str, name: object, known: Collection[str]) -> BadInput:
    """Say that `name` is no `kind`, which known ones it may have meant, and all there are."""
    written = str(name).lower().replace("-", "_")
    spelled = {choice.lower().replace("-", "_"): choice for choice in known}
    # A group's name alone, or the beginning of a member's, is as good a hint as a near spelling.
    near = [c for form, c in spelled.items() if written and any(part.startswith(written) for part in form.split("/"))]
    near += [spelled[form] for form in difflib.get_close_matches(written, spelled) if spelled[form] not in near]
    meant = f"; did you mean {' or '.join(near)}?" if near else ";"
    return BadInput(f"there is no {kind} {name!r}{meant} known are {', '.join(known)}")
