"""Ctrl-C at any time is one line and the exit code 130."""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

from doxa.terminal.interrupt import gentle_interrupt
from doxa_cli.interrupts import raise_on_signals

ROOT = Path(__file__).parents[2]
# As the installed script does it; the word says that Python itself has started.
SCRIPT = "import sys; from doxa_cli.{} import main; print('begun', flush=True); sys.exit(main())"


def script(*arguments: str) -> subprocess.Popen[str]:
    """The installed program, in a group of processes of its own."""
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["doxa"]
    module, function = re.fullmatch(r"doxa_cli\.(\w+):(\w+)", entry).groups()  # type: ignore[union-attr]
    assert function == "main"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(module), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout
    assert process.stdout.readline() == "begun\n"
    return process


def test_the_entry_imports_nothing_before_it_can_be_interrupted() -> None:
    code = "import sys; had = {*sys.modules}; import doxa_cli.entry; print(sorted({*sys.modules} - had))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "['doxa_cli', 'doxa_cli.entry']\n"


# Not at once: between the word and the program's first line Python itself still answers.
@pytest.mark.parametrize("after", [0.01, 0.02, 0.05, 0.1, 0.2])
def test_control_c_while_the_program_is_imported_is_one_line(after: float) -> None:
    process = script("version")
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    # The interruption waits for the last import; what little is left of the command may be quicker than it.
    assert (process.returncode, err) == (130, "doxa: interrupted\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("after", [0.05, 0.5, 1.5])
def test_other_signals_end_any_command_in_one_line(number: int, code: int, after: float) -> None:
    process = script("demo", "--out", "d")
    time.sleep(after)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err.splitlines()[-1].startswith(("doxa: ended by", "doxa: interrupted"))
    assert "Traceback" not in err


def test_what_learns_takes_them_for_requests() -> None:
    with raise_on_signals(), gentle_interrupt() as stop:
        signal.raise_signal(signal.SIGTERM)
    assert stop.is_set()
    assert stop.signal == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_who_decides_about_a_signal_goes_on_doing_so(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.signal(signal.SIGTERM, lambda n, _: heard.append(n))
    try:
        with raise_on_signals():
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before[0])
        signal.signal(signal.SIGTERM, before[1])
    assert heard == [signal.SIGTERM]


@pytest.mark.parametrize("after", [0.0, 2.0, 5.0])
def test_control_c_ends_the_demo_and_its_workers_in_one_line(after: float) -> None:
    process = script("demo", "--out", "d")
    assert process.stderr
    assert process.stderr.readline().startswith("digits and a curve")
    time.sleep(after)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "doxa: interrupted"
    assert "Traceback" not in err
    assert "Error" not in err
    assert not Path("d").exists()
    deadline = time.monotonic() + 20
    while _alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(process.pid), "workers are left behind"


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _import_within(name: str) -> None:
    with raise_on_signals():
        importlib.import_module(name)


def test_an_interruption_that_waited_for_an_import_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The context ends before the import could: the interruption comes at its end, and never after."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "interrupted_here.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nthere = True\n")
    monkeypatch.setattr("doxa_cli.interrupts.RETRY_SECONDS", 60.0)
    with pytest.raises(KeyboardInterrupt):
        _import_within("interrupted_here")
    assert sys.modules.pop("interrupted_here").there, "the import was not cut short"
    assert not [t for t in threading.enumerate() if isinstance(t, threading.Timer)]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
