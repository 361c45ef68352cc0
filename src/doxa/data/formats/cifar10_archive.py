"""CIFAR-10 as it is published: an archive of six batches."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path

from doxa.data.files import broken_file_error, read_bytes


def read_members(path: Path, names: Collection[str]) -> dict[str, bytes]:
    """The bytes of the batches `names`, taken out in one pass."""
    batch_of_member = {f"cifar-10-batches-bin/{name}.bin": name for name in names}
    batches: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(read_bytes(path)), mode="r|gz") as archive:
            for member in archive:
                member_file = archive.extractfile(member) if member.name in batch_of_member else None
                if member_file is not None:
                    batches[batch_of_member[member.name]] = member_file.read()
                if len(batches) == len(batch_of_member):
                    return batches
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise broken_file_error(path, f"it does not unpack: {error}") from error
    raise broken_file_error(path, f"it holds no batch {min(set(batch_of_member.values()) - set(batches))}")
