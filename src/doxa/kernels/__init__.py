"""The C kernels, compiled once for this machine where it has a C compiler; without one, torch does their work.

C and not an extension of torch's: it needs no headers, no build when Doxa is installed and no wheel for each platform,
it compiles in a second, and `-march=native` may use all that the processor has. Python hands over addresses and strides
by ctypes, and lets go of its lock on the way.

Nobody has tried the compiler that is met here. So the library is asked known questions before it is used, and one that
answers wrongly is as good as none: the next flags are tried, then the next compiler. It is kept under a name made of
all that its bits depend on, source, compiler, flags and processor, and checkpoints hold that name: who goes on with a
run on other kernels is told that bits may differ. A folder in which others may put something is not used, for what lies
in it will be run.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import math
import multiprocessing
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from doxa.errors import BadInput
from doxa.storage.cache import cache_folder, find_intruder, is_private, make_private

INHERITED = "DOXA_KERNELS"  # names the temporary folder of the process that started this one
SOURCE = Path(__file__).with_name("flat.c")
# -ffast-math would reorder sums that must not be, and flush denormal numbers to zero in the whole process; some
# compilers mean it unless told, hence its opposite first. What it does that does no harm is asked for by name: nobody
# looks at errno, at floating-point traps or at the sign of zero, and without them roots and choices become vector
# instructions.
FLAGS = ("-fno-fast-math", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-shared", "-fPIC")

# Types by what they hold: a count or stride, a seed or counter, a number, an address (None for nothing), a choice.
_N, _KEY, _X, _V, _FLAG = ctypes.c_int64, ctypes.c_uint64, ctypes.c_float, ctypes.c_void_p, ctypes.c_int
_WORD = ctypes.c_uint32
_ROWS = (_N, _V, _KEY)  # members, their seeds, the upper half of their counters
_ADAM = (_X,) * 7  # decays and what they leave, the small number, what is left of both corrections
_NOISE_STREAM = (_V, _KEY, _N, _X)  # seeds, upper half, first number, sign: enough to make noise again
_SLOPES = (_N, _N, _FLAG, _FLAG, _V, _V, _N, _V, _V, _N, _V, _N, _V, _N, _N, *_NOISE_STREAM, _V, _V, _V)
SIGNATURES = {
    "doxa_normals": (*_ROWS, _N, _N, _X, _N, _V),
    "doxa_signs": (*_ROWS, _N, _N, _V),
    "doxa_kept": (*_ROWS, _N, _WORD, _X, _N, _V),
    "doxa_draw": (*_ROWS, _N, _N, _X, _N, _N, _N, _V, _V, _V, _V, _V),
    "doxa_fill_scale": (_N, _N, _FLAG, _N, _N, _V, _V),
    "doxa_descend": (*_SLOPES, _V, *_ADAM, _V, _V, _V, _V),
    "doxa_slopes": (*_SLOPES, _V, _V),
    "doxa_collect": (_N, _N, _FLAG, _FLAG, _N, _V, _N, _V, *_NOISE_STREAM, _N, _V, _V, _N, _V, _V),
    "doxa_adam": (_N, _N, _V, *_ADAM, _N, _V, _N, _V, _V, _V),
    "doxa_mixture_slope": (_N, _X, _X, _X, _X, _V, _V),
}


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels, or None: no compiler, none that gets its sums right, or DOXA_NATIVE=0."""
    if os.environ.get("DOXA_NATIVE") == "0" or sys.platform == "win32":
        return None
    for folder in _folders():
        for compiler, version in _compilers():
            for flags in _flags(version):
                # Kernels are a convenience: whatever keeps them from being built must not keep anyone from training.
                try:
                    compiled = _declare_signatures(ctypes.CDLL(str(_build(folder, compiler, version, flags))))
                    if _passes_self_test(compiled):
                        return compiled
                except Exception:
                    continue
    return None


def fingerprint() -> str | None:
    """What the kernels' bits depend on (source, compiler, flags, processor), as a short word; None without them."""
    compiled = library()
    return None if compiled is None else Path(compiled._name).stem


def kernel(name: str, *vectors: Tensor | None) -> Callable[..., None] | None:
    """The C function of this name, where it can work on these rows [K, n]: float32, in the CPU's memory, each dense.

    None asks the caller to do the same in torch, which serves any dtype and device and may be differentiated, compiled
    and vectorised: every pass is stated twice, and it is not the user who has to know which one runs.
    """
    if torch.compiler.is_compiling():
        return None
    for v in vectors:
        if v is not None and not _is_supported(v):
            return None
    compiled = library()
    return None if compiled is None else getattr(compiled, name)


def pointer(vector: Tensor | None) -> int | None:
    """Where a vector's numbers begin, as C takes it."""
    return None if vector is None else vector.data_ptr()


def stride(rows: Tensor | None) -> int:
    """From one row to the next, in numbers; 0 where there is none, which C then does not look at."""
    return 0 if rows is None else rows.stride(0)


def mark_written(*vectors: Tensor) -> None:
    """Tell autograd that these were written to, as torch's own operations do.

    It counts versions: a backward pass that needs what was there before then fails in words, not with wrong numbers.
    """
    for v in vectors:
        torch.autograd.graph.increment_version(v)


def _is_supported(v: Tensor) -> bool:
    if not v.is_cpu or v.dtype != torch.float32 or (v.stride(-1) != 1 and v.shape[-1] > 1):
        return False
    if v.requires_grad and torch.is_grad_enabled():
        return False  # a graph is wanted, which C does not make
    try:
        v.data_ptr()
    except RuntimeError:
        return False  # under vmap or grad there is no memory to point at
    return True


def _declare_signatures(compiled: ctypes.CDLL) -> ctypes.CDLL:
    for name, types in SIGNATURES.items():
        function = getattr(compiled, name)
        function.argtypes, function.restype = types, None
    return compiled


def _passes_self_test(compiled: ctypes.CDLL) -> bool:
    """Whether known questions get their known answers: a compiler may take liberties with floating point.

    Scales from the far ends of rho would show flushed or reordered sums; normals across the border of two groups show
    Philox's whole numbers, the polynomials and the walk over groups at once.
    """
    rho = torch.tensor([-60.0, -5.0, -1.0, 0.0, 3.0, 79.0])
    scale, noise, seed = torch.empty(6), torch.empty(6), torch.zeros(1, dtype=torch.int64)
    compiled.doxa_fill_scale(1, 6, 0, 6, 6, rho.data_ptr(), scale.data_ptr())
    compiled.doxa_normals(1, seed.data_ptr(), 0, 1022, 6, 1.0, 6, noise.data_ptr())
    expected = [math.log1p(math.exp(r)) for r in rho.tolist()]
    close = all(abs(s / e - 1) < 1e-6 for s, e in zip(scale.tolist(), expected, strict=True))
    return close and all(
        abs(z - expected_z) < 1e-5 for z, expected_z in zip(noise.tolist(), KNOWN_NORMALS, strict=True)
    )


# Numbers 1022 to 1027 of the stream of seed 0.
KNOWN_NORMALS = (0.7161101, -1.4232160, 0.1631162, 0.8768538, 1.3253633, -0.9251704)


def _compilers() -> Iterator[tuple[str, bytes]]:
    """Every compiler at hand, once, with what it says of its version; the user's choice first.

    `cc` is often a link to one of the others: trying it twice would double the wait of who has none that works.
    """
    real_paths = set()
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        path = shutil.which(name) if name else None
        if path is None or (real_path := os.path.realpath(path)) in real_paths:
            continue
        real_paths.add(real_path)
        try:
            yield path, subprocess.run([path, "--version"], capture_output=True, check=True, timeout=60).stdout
        except (OSError, subprocess.SubprocessError):
            continue


def _flags(version: bytes) -> Iterator[tuple[str, ...]]:
    """From the fastest to what any compiler understands.

    Without -march=native the loops are still vector instructions, of the oldest processor of the kind.
    """
    # GCC's OpenMP is torch's own on Linux: one pool of threads. Another's would be a second pool, or on a Mac a crash.
    shares_torch_openmp = sys.platform == "linux" and b"clang" not in version.lower()
    for native in (("-march=native",), ()):
        for parallel in (("-fopenmp",), ()) if shares_torch_openmp else ((),):
            yield (*FLAGS, *native, *parallel)


def _build(folder: Path, compiler: str, version: bytes, flags: tuple[str, ...]) -> Path:
    """The path of the library in a folder, after compiling it if it is not there whole.

    A process may be killed while it writes, and several may start at once, as workers do: each compiles in a folder of
    its own and puts the result in place in one step, and a library is believed only beside its own checksum.
    """
    source = _without_comments(SOURCE.read_text()).encode()
    inputs = [source, compiler.encode(), version, " ".join(flags).encode(), _processor()]
    name = f"flat-{hashlib.sha256(b'|'.join(inputs)).hexdigest()[:20]}.so"
    target, digest_file = folder / name, folder / f"{name}.sha256"
    if not (is_private(target) and is_private(digest_file) and digest_file.read_text() == _digest(target)):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            built, built_digest = Path(scratch) / name, Path(scratch) / digest_file.name
            command = [compiler, *flags, "-o", str(built), str(SOURCE), "-lm"]
            subprocess.run(command, capture_output=True, check=True, timeout=300)
            built_digest.write_text(_digest(built))
            built.chmod(0o700)  # whatever the umask: what others could have written to is not believed
            built_digest.chmod(0o600)
            built.replace(target)  # atomic: another process finds all of it or nothing
            built_digest.replace(digest_file)
    return target


def _without_comments(source: str) -> str:
    """What a compiler sees: better words change no bits, and must not warn who goes on with a run that they may."""
    without_comments = re.sub(r"/\*.*?\*/", " ", source, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in without_comments.splitlines() if line.strip())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _folders() -> Iterator[Path]:
    """The user's cache, if it is the user's alone; then a temporary folder, which goes when the process does.

    Processes that this one starts find the temporary folder by its name in INHERITED, and do not compile again.
    """
    inherited = os.environ.get(INHERITED)
    if inherited and is_private(Path(inherited)):
        yield Path(inherited)
    try:
        folder = (cache_folder() / "native").resolve()
        intruder = find_intruder(folder)
        if intruder is None:
            make_private(folder)
            if is_private(folder):
                yield folder
        elif multiprocessing.parent_process() is None and os.environ.get("LOCAL_RANK", "0") == "0":  # no worker
            warnings.warn(
                f"compiled kernels cannot be kept in {folder}, as {intruder.reason}; they are compiled at each start. "
                f"To keep them, {intruder.advice}",
                stacklevel=2,
            )
    except (OSError, BadInput):
        pass
    temporary = tempfile.mkdtemp(prefix="doxa-native-")
    atexit.register(_remove, temporary, os.getpid())
    os.environ[INHERITED] = temporary
    yield Path(temporary)


def _remove(temporary: str, maker: int) -> None:
    if os.getpid() == maker:  # and no fork of it, which would take it from all others
        shutil.rmtree(temporary, ignore_errors=True)


def _processor() -> bytes:
    """What -march=native depends on, so that a home shared by several machines holds a library for each."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        lines = []
    cpu_lines = sorted(
        {line for line in lines if line.startswith((b"model name", b"flags", b"Features", b"cpu\t", b"isa"))}
    )
    return b"".join([*cpu_lines, platform.machine().encode(), platform.processor().encode()])
