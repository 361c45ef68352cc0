"""CIFAR-10 as it is published: an archive of six batches."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path

from doxa.data.files import broken, read


def read_members(path: Path, names: Collection[str]) -> dict[str, bytes]:
    """The bytes of the batches `names`, taken out in one pass."""
    wanted = {f"cifar-10-batches-bin/{name}.bin": name for name in names}
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(read(path)), mode="r|gz") as archive:
            for member in archive:
                stored = archive.extractfile(member) if member.name in wanted else None
                if stored is not None:
                    found[wanted[member.name]] = stored.read()
                if len(found) == len(wanted):
                    return found
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise broken(path, f"it does not unpack: {error}") from error
    raise broken(path, f"it holds no batch {min(set(wanted.values()) - set(found))}")
