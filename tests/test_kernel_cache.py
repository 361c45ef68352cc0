"""Where compiled kernels are kept: where nobody else can put any, and under every umask they are compiled once."""

from __future__ import annotations

import grp
import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from doxa import kernels
from doxa.storage.cache import Intruder, cache_folder, find_intruder, make_private
from for_processes import run_script

compiled = pytest.mark.skipif(kernels.library() is None, reason="no C compiler here")
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0

SCRIPT = "import os; os.umask(0o002); from doxa import kernels; print(kernels.library()._name)"


def start_process(cache: Path) -> tuple[Path, str]:
    """Where another process of umask 002 has its kernels, and its notes."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(cache.parent), kernels.INHERITED: ""}
    done = run_script(SCRIPT, environment=environment)
    return Path(done.stdout.strip()), done.stderr


@compiled
def test_processes_under_umask_002_compile_once(tmp_path: Path) -> None:
    cache = tmp_path / "home" / ".cache"
    library_file, notes = start_process(cache)
    assert notes == ""
    assert library_file.stem == kernels.fingerprint()
    assert library_file.parent == cache / "doxa" / "native"
    before = library_file.stat()
    assert start_process(cache) == (library_file, "")
    assert (library_file.stat().st_mtime_ns, library_file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


class Starts:
    """Looks for kernels as a process does when it starts, with a compiler that brings the library it has already."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        compiler, self.log, self._patch = folder / "compiler", folder / "log", patch
        made = kernels.library()
        assert made is not None
        lines = (
            "#!/bin/sh",
            '[ "$1" = --version ] && echo 1 && exit',
            f"echo x >> {self.log}",
            'while [ "$1" != -o ]; do shift; done',
            f'cp {made._name} "$2"',
        )
        compiler.write_text("\n".join(lines))
        compiler.chmod(0o755)
        patch.setenv("CC", str(compiler))
        self.log.touch()

    def __call__(self, cache: Path, umask: int = 0o022, inherited: str = "") -> tuple[int, list[str]]:
        """How often something was compiled, and what was said."""
        self._patch.setenv("XDG_CACHE_HOME", str(cache))
        self._patch.setenv(kernels.INHERITED, inherited)
        before = self.log.stat().st_size
        usual = os.umask(umask)
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                assert kernels.library.__wrapped__() is not None
        finally:
            os.umask(usual)
        return (self.log.stat().st_size - before) // 2, [str(each.message) for each in said]


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Starts:
    return Starts(tmp_path_factory.mktemp("compiler"), monkeypatch)


@compiled
@pytest.mark.usefixtures("start")
def test_temporary_kernels_go_with_their_process(tmp_path: Path) -> None:
    cache = tmp_path / "c"
    make_private(cache)
    cache.chmod(0o777)
    library_file, notes = start_process(cache)
    assert "compiled kernels cannot be kept" in notes
    assert library_file.parent.parent == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert list(cache.iterdir()) == []


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@compiled
@pytest.mark.parametrize("umask", [0o002, 0o000, 0o077])
def test_kernels_are_compiled_once_under_every_umask(tmp_path: Path, start: Starts, umask: int) -> None:
    cache = tmp_path / "home" / ".cache"
    assert start(cache, umask) == (1, [])
    assert start(cache, umask) == start(cache, 0o022) == (0, [])
    made = [cache.parent, cache, *cache.rglob("*")]
    assert len(made) == 6
    assert all(mode(path) & 0o077 == 0 for path in made)


@compiled
def test_kernels_of_an_older_version_under_umask_002_are_compiled_once_more(tmp_path: Path, start: Starts) -> None:
    assert start(tmp_path / "c") == (1, [])
    for path in (tmp_path / "c" / "doxa" / "native").iterdir():
        path.chmod(0o775)
    assert start(tmp_path / "c", 0o002) == (1, [])
    assert start(tmp_path / "c", 0o002) == (0, [])


@compiled
@pytest.mark.parametrize("shared", ["", "doxa", "doxa/native"])
def test_cache_below_a_folder_that_others_can_write_to_is_not_used_and_said_so_once(
    tmp_path: Path, start: Starts, shared: str
) -> None:
    cache = tmp_path / "c"
    make_private(cache / "doxa" / "native")
    (cache / shared).chmod(0o777)
    times, notes = start(cache)
    assert times == 1
    assert len(notes) == 1
    assert f"cannot be kept in {cache}/doxa/native, as others can write to {cache / shared};" in notes[0]
    assert notes[0].endswith(f". To keep them, chmod go-w {cache / shared}")
    assert not list((cache / "doxa" / "native").iterdir())


@compiled
@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
def test_cache_under_another_user_s_folder_is_not_used(tmp_path: Path, start: Starts) -> None:
    home = tmp_path / "theirs"
    home.mkdir()
    os.chown(home, 12345, 12345)
    times, notes = start(home / ".cache")
    assert times == 1
    assert f"{home} belongs to another user;" in notes[0]
    assert "chmod" not in notes[0], "what belongs to somebody else cannot be closed"
    assert "set XDG_CACHE_HOME to a folder of yours" in notes[0]
    assert not list(home.iterdir()), "what root made there would be in its owner's way"
    native = tmp_path / "c" / "doxa" / "native"
    make_private(native)
    os.chown(native, 12345, 12345)
    assert f"{native} belongs to another user;" in start(tmp_path / "c")[1][0]


@compiled
@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
@pytest.mark.parametrize("suffix", [".so", ".sha256"])
def test_library_of_another_user_is_not_used(tmp_path: Path, start: Starts, suffix: str) -> None:
    start(tmp_path / "c")
    (path,) = (tmp_path / "c" / "doxa" / "native").glob(f"*{suffix}")
    os.chown(path, 12345, 12345)
    assert start(tmp_path / "c") == (1, [])


def test_link_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    (open_folder / "c").mkdir(parents=True)
    open_folder.chmod(0o777)
    (tmp_path / "link").symlink_to(open_folder / "c")
    native = tmp_path / "link" / "doxa" / "native"
    assert find_intruder(native) == Intruder(f"others can write to {open_folder}", f"chmod go-w {open_folder}")
    open_folder.chmod(0o1777)
    assert find_intruder(native) is None, "the sticky bit keeps others' hands off"


def test_group_of_one_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each user has a group of their own, umask 002 is the usual one."""
    folder = tmp_path / "c"
    folder.mkdir()
    folder.chmod(0o775)
    me = SimpleNamespace(pw_name="ada", pw_gid=folder.stat().st_gid)
    monkeypatch.setattr("pwd.getpwuid", lambda number: me)
    for name, members, expected in (
        ("ada", [], None),
        ("ada", ["ada"], None),
        ("ada", ["ada", "eve"], f"others can write to {folder}"),
        ("staff", [], f"others can write to {folder}"),
    ):
        group = SimpleNamespace(gr_name=name, gr_mem=members)
        monkeypatch.setattr(grp, "getgrgid", lambda number, group=group: group)
        monkeypatch.setattr("doxa.storage.cache.ROOT_GROUP", -1)
        found = find_intruder(folder)
        assert (found and found.reason) == expected


def test_folders_are_made_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a" / "b"))
    usual = os.umask(0)
    try:
        make_private(cache_folder())
        make_private(cache_folder())
    finally:
        os.umask(usual)
    assert [mode(path) for path in (tmp_path / "a", tmp_path / "a" / "b", cache_folder())] == [0o700] * 3


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
def test_root_of_the_host_is_root_in_a_namespace_and_nobody_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid_map, overflow = tmp_path / "uid_map", tmp_path / "overflowuid"
    monkeypatch.setattr("doxa.storage.cache.UID_MAP", uid_map)
    monkeypatch.setattr("doxa.storage.cache.OVERFLOW_UID", overflow)
    overflow.write_text("65534\n")
    above = tmp_path / "home"
    (above / "me").mkdir(parents=True)
    os.chown(above, 65534, 65534)
    stranger = f"{above} belongs to another user"
    for content, expected in (
        ("         0          0 4294967295\n", stranger),
        ("         0       1000          1\n         1     100000      65536\n", None),
    ):
        uid_map.write_text(content)
        found = find_intruder(above / "me" / "doxa")
        assert (found and found.reason) == expected
    uid_map.unlink()
    assert find_intruder(above / "me" / "doxa") is not None
    uid_map.write_text("0 1000 1")
    os.chown(above, 12345, 12345)
    assert find_intruder(above / "me" / "doxa") is not None


def open_to_others(folder: Path) -> Path:
    make_private(folder)
    folder.chmod(0o777)
    return folder


@compiled
def test_processes_started_by_one_share_its_temporary_kernels(tmp_path: Path, start: Starts) -> None:
    cache = open_to_others(tmp_path / "c")
    assert start(cache)[0] == 1
    theirs = os.environ[kernels.INHERITED]
    assert start(cache, inherited=theirs) == (0, [])
    for path in Path(theirs).iterdir():
        assert mode(path) & 0o077 == 0
    Path(theirs).chmod(0o777)
    times, notes = start(cache, inherited=theirs)
    assert (times, len(notes)) == (1, 1)
    assert os.environ[kernels.INHERITED] != theirs
    assert start(cache, inherited=str(tmp_path / "gone"))[0] == 1


WORKERS = """
import multiprocessing
from doxa import kernels

def name(_):
    return kernels.library()._name

if __name__ == "__main__":
    with_first = kernels.library()._name
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(len({with_first, *pool.map(name, range(4))}))
"""


@compiled
def test_workers_neither_compile_nor_warn_again(tmp_path: Path) -> None:
    cache, script = open_to_others(tmp_path / "c"), tmp_path / "script.py"
    script.write_text(WORKERS)
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(tmp_path), kernels.INHERITED: ""}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    assert done.stderr.count("compiled kernels cannot be kept") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "script.py"]


@compiled
@pytest.mark.usefixtures("start")
def test_a_fork_leaves_the_temporary_kernels_to_the_process_that_made_them(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    kernels._remove(str(folder), os.getpid() + 1)
    assert folder.exists()
    kernels._remove(str(folder), os.getpid())
    assert not folder.exists()


SEARCH = """
import for_workers
from doxa.search import engines, minimise

if __name__ == "__main__":
    minimise(for_workers.sphere, [3.0, -2.0], engine=engines.pool(2), generations=2, progress=False)
"""


@compiled
def test_pool_of_a_search_compiles_once(tmp_path: Path, start: Starts) -> None:
    cache, script = open_to_others(tmp_path / "c"), tmp_path / "script.py"
    script.write_text(SEARCH)
    search_path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": search_path, kernels.INHERITED: ""}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert start.log.read_text() == "x\n"
    assert done.stderr.count("compiled kernels cannot be kept") == 1
