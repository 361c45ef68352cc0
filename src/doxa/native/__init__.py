"""The C kernels, compiled once for this machine where it has a C compiler; without one, torch does their work."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

SOURCE = Path(__file__).with_name("flat.c")
# Not -ffast-math: linked into a library, it would flush denormal numbers to zero in the whole process.
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-shared", "-fPIC")

_N, _KEY, _X, _V, _FLAG = ctypes.c_int64, ctypes.c_uint64, ctypes.c_float, ctypes.c_void_p, ctypes.c_int
SIGNATURES = {
    "doxa_normals": (_KEY, _N, _N, _X, _V),
    "doxa_draw": (_KEY, _N, _N, _X, _V, _V, _V, _V, _V),
    "doxa_fill_scale": (_N, _V, _V),
    "doxa_finish": (_N, _FLAG, _X, _X, _X, _V, _V, _V, _V, _V),
    "doxa_mixture_slope": (_N, _X, _X, _X, _X, _V, _V),
}


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels, or None: no compiler, no room to write, or DOXA_NATIVE=0."""
    if os.environ.get("DOXA_NATIVE") == "0" or sys.platform == "win32":
        return None
    compiler = next((c for c in (os.environ.get("CC"), "cc", "gcc", "clang") if c and shutil.which(c)), None)
    if compiler is None:
        return None
    # OpenMP is torch's own where it can be: one pool of threads for both.
    for extra in (("-fopenmp",), ()):
        try:
            return _typed(ctypes.CDLL(str(_built(compiler, (*FLAGS, *extra)))))
        except (OSError, subprocess.SubprocessError):
            continue
    return None


def kernel(name: str, *vectors: Tensor | None) -> Callable[..., None] | None:
    """The C function of this name, where it can work on these vectors: float32, in the CPU's memory, in one piece."""
    for v in vectors:
        if v is not None and (v.device.type != "cpu" or v.dtype != torch.float32 or not v.is_contiguous()):
            return None
    found = library()
    return None if found is None else getattr(found, name)


def at(vector: Tensor | None) -> int | None:
    """Where a vector's numbers begin, as C takes it."""
    return None if vector is None else vector.data_ptr()


def _typed(found: ctypes.CDLL) -> ctypes.CDLL:
    for name, types in SIGNATURES.items():
        function = getattr(found, name)
        function.argtypes, function.restype = types, None
    return found


def _built(compiler: str, flags: tuple[str, ...]) -> Path:
    """The path of the library in the cache, after compiling it if it is not there."""
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    about = "\n".join([SOURCE.read_text(), compiler, version, *flags, _processor()])
    name = f"flat-{hashlib.sha256(about.encode()).hexdigest()[:20]}.so"
    folder = _cache()
    target, seal = folder / name, folder / f"{name}.sha256"
    if not (target.exists() and seal.exists() and seal.read_text() == _digest(target)):
        with tempfile.TemporaryDirectory(dir=folder) as work:
            made, sealed = Path(work) / name, Path(work) / seal.name
            command = [compiler, *flags, "-o", str(made), str(SOURCE), "-lm"]
            subprocess.run(command, capture_output=True, check=True, timeout=300)
            sealed.write_text(_digest(made))
            made.replace(target)  # atomic: another process finds all of it or nothing
            sealed.replace(seal)
    return target


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _cache() -> Path:
    """A folder of this user's own; a temporary one where the home cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "doxa" / "native"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return _temporary()


@functools.cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="doxa-native-"))


def _processor() -> str:
    """What -march=native depends on, so that a home shared by several machines holds a library for each."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    except OSError:
        return platform.processor() + platform.machine()
