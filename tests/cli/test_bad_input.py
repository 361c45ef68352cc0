"""Bad input is one clear line on stderr and the right exit code, never a traceback."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doxa.runs.folder import read_spec, write_spec

from .small import TINY, Command, flowers, houses, write


def fitted(path: object, *more: object) -> tuple[object, ...]:
    return ("fit", path, "--out", "run", *TINY, *more)


def test_a_target_that_is_not_there(doxa: Command, tables: Path) -> None:
    ended = doxa(*fitted(tables / "houses.csv", "--target", "prise"))
    assert ended.code == 1
    assert "houses.csv has no column 'prise'; did you mean 'price'?" in ended.message
    ended = doxa(*fitted(tables / "houses.csv"))
    assert ended.code == 1
    assert "--target NAME, one of size, town, price" in ended.message


def test_a_target_of_five_thousand_words(doxa: Command) -> None:
    path = write(Path("names.csv"), {"x": range(5000), "who": [f"somebody {i}" for i in range(5000)]})
    ended = doxa(*fitted(path, "--target", "who"))
    assert ended.code == 1
    assert "5,000 classes in 5,000 rows, too many to learn" in ended.message


def test_a_column_that_never_varies(doxa: Command) -> None:
    path = write(Path("t.csv"), {**houses(), "planet": ["Earth"] * 80})
    ended = doxa(*fitted(path, "--target", "price"))
    assert ended.code == 1
    assert "'planet' has the same value in every row" in ended.message
    assert "--drop" in ended.message
    assert doxa(*fitted(path, "--target", "price", "--drop", "planet", "-q")).code == 0
    assert "planet" not in Path("run/run.json").read_text()


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,b\n"])
def test_an_empty_file(doxa: Command, content: bytes) -> None:
    Path("t.csv").write_bytes(content)
    ended = doxa(*fitted("t.csv", "--target", "a"))
    assert ended.code == 1
    assert "is empty" in ended.message or "has no rows" in ended.message


def test_a_column_that_is_missing_at_prediction(doxa: Command, runs: Path) -> None:
    rows = houses(5)
    path = write(Path("t.csv"), {"size": rows["size"]})
    ended = doxa("predict", runs / "houses", path)
    assert ended.code == 1
    assert "lacks the column 'town'" in ended.message


def test_a_category_that_training_never_had(doxa: Command, runs: Path) -> None:
    path = write(Path("t.csv"), {"size": [100.0, 90.0], "town": ["Rio", "Atlantis"]})
    ended = doxa("predict", runs / "houses", path)
    assert ended.code == 1
    assert "row 2 of t.csv has 'Atlantis' in column 'town'" in ended.message
    assert "--new allow" in ended.message
    allowed = doxa("predict", runs / "houses", path, "--new", "allow")
    assert allowed.code == 0
    assert [line.rsplit(",")[-1] for line in allowed.out.splitlines()] == ["unlike", "no", "yes"]
    assert "must be" in doxa("predict", runs / "houses", path, "--new", "perhaps").message


def test_a_wrong_encoding(doxa: Command) -> None:
    Path("t.csv").write_bytes("größe,preis\n".encode("latin-1") + b"1,2\n" * 20)
    ended = doxa(*fitted("t.csv", "--target", "preis"))
    assert ended.code == 1
    assert "is not utf-8 text" in ended.message
    assert "latin-1" in ended.message
    assert "is no encoding" in doxa(*fitted("t.csv", "--target", "preis", "--encoding", "klingon")).message
    Path("t.csv").write_bytes("size,preis\n1,2\n".encode("utf-16-be"))
    unmarked = doxa(*fitted("t.csv", "--target", "preis", "--encoding", "utf-16"))
    assert unmarked.code == 1
    assert "is not utf-16 text" in unmarked.message


def test_a_folder_for_a_file_and_a_file_for_a_folder(doxa: Command, tables: Path, runs: Path) -> None:
    assert "is a folder" in doxa(*fitted(tables, "--target", "price")).message
    assert "is a folder" in doxa("predict", runs / "houses", tables).message
    assert "is a file" in doxa("judge", tables / "houses.csv").message
    assert "is a folder" in doxa("predict", runs / "houses", tables / "rows.csv", "--out", tables, "--force").message
    ended = doxa("fit", tables / "houses.csv", "--target", "price", "--out", tables / "rows.csv", *TINY)
    assert "is a file" in ended.message
    assert ended.code == 1


@pytest.mark.parametrize("command", ["judge", "report", "prune", "attack", "predict"])
def test_a_run_that_is_still_being_written(command: str, doxa: Command, runs: Path, tables: Path) -> None:
    copy = shutil.copytree(runs / "houses", Path("copy"))
    write_spec(copy, {**read_spec(copy), "status": "learning"})
    ended = doxa(command, copy, *([tables / "rows.csv"] if command == "predict" else []))
    assert ended.code == 1
    assert "copy is still being written, or was interrupted" in ended.message


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (("fit", "mnits"), "did you mean 'mnist'?"),
        (("data", "show", "mnits"), "did you mean 'mnist'"),
        (("data", "path", "fashion"), "did you mean 'fashion_mnist'"),
        (("judge", "runs/nothing"), "there is no run runs/nothing"),
        (("report", "nothing"), "there is no run nothing"),
        (("fit", "nothing.csv", "--target", "y"), "there is no file nothing.csv"),
        (("fit",), "say what to learn from"),
        (("fit", "two_moons", "--learner", "variatonal"), "did you mean 'variational'?"),
        (("fit", "two_moons", "--learner", "variational", "--prior", "gausian"), "did you mean 'gaussian'?"),
        (("fit", "two_moons", "--net", "mpl:3"), "did you mean 'mlp'?"),
        (("fit", "two_moons", "--net", "mlp:3,activation=tahn"), "did you mean 'tanh'?"),
        (("fit", "two_moons", "--set", "epoch=3"), "did you mean 'epochs'?"),
        (("fit", "two_moons", "--set", "epochs"), "--set takes name=value"),
        (("fit", "two_moons", "--set", "epochs=few"), "epochs must be of type int"),
        (("fit", "two_moons", "--set", "hold_out=much"), "hold_out must be a number"),
        (("fit", "two_moons", "--epochs", "0"), "epochs must be at least 1"),
        (("fit", "two_moons", "--target", "y"), "target is for a table of your own"),
        (("fit", "two_moons", "--samples", "3"), "samples is of no use to the learner auto"),
        (("fit", "two_moons", "--learner", "point", "--noise", "flipout"), "noise is of no use to the learner point"),
        (("fit", "two_moons", "--config", "nothing.toml"), "there is no file nothing.toml"),
        (("fit", "two_moons", "--learner", "variational", "--device", "nonsense"), "cannot be used here"),
        (("fit", "two_moons", "--seed", "99999999999999999999"), "seed must lie between"),
        (("fit", "two_moons", "--learner", "point", "--same-start"), "same_start is of no use without several members"),
        (("fit", "two_moons", "--learner", "point", "--validation-samples", "3"), "of no use without patience"),
        (("fit", "two_moons", "--checkpoint-every", "3"), "checkpoint_every is of no use to the learner auto"),
    ],
)
def test_an_unknown_name_or_a_setting_without_sense(
    arguments: tuple[str, ...], expected_text: str, doxa: Command
) -> None:
    ended = doxa(*arguments)
    assert ended.code == 1
    assert expected_text in ended.message
    # What was never learned leaves nothing behind: the next attempt may have the folder.
    assert not Path("runs/two_moons").exists()


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (("fti",), "did you mean 'fit'?"),
        (("fit", "two_moons", "--epoch", "3"), "did you mean --epochs?"),
        (("fit", "two_moons", "--epochs", "three"), "--epochs"),
        (("predict",), "RUN"),
        (("data", "gte"), "did you mean 'get'?"),
        (("judge", "a", "b", "c"), "unexpected extra argument"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], expected_text: str, doxa: Command) -> None:
    ended = doxa(*arguments)
    assert ended.code == 2
    assert expected_text.lower() in ended.message.lower()
    assert "--help" in ended.message


def test_a_damaged_run(doxa: Command, runs: Path) -> None:
    copy = shutil.copytree(runs / "houses", Path("copy"))
    whole = (copy / "belief.doxa").read_bytes()
    (copy / "belief.doxa").write_bytes(whole[: len(whole) // 2])
    ended = doxa("judge", copy)
    assert ended.code == 1
    assert "belief.doxa" in ended.message


def test_an_unexpected_fault_is_one_line_too(doxa: Command, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the sky\nfell")

    monkeypatch.setattr("doxa.runs.open_run", broken)
    ended = doxa("judge", runs / "houses")
    assert ended.code == 70
    assert "unexpected RuntimeError: the sky fell" in ended.message
    assert "DOXA_TRACEBACK=1" in ended.message
    monkeypatch.setenv("DOXA_TRACEBACK", "1")
    assert "Traceback" in doxa("judge", runs / "houses").err


def test_a_disk_or_a_memory_that_is_full_is_no_fault(
    doxa: Command, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, expected_text in (
        (OSError(28, "No space left on device"), "No space left"),
        (MemoryError(), "not enough memory"),
    ):

        def full(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr("doxa.runs.open_run", full)
        ended = doxa("judge", runs / "houses")
        assert ended.code == 1
        assert expected_text in ended.message


def test_nothing_is_overwritten_unasked(doxa: Command, runs: Path, tables: Path) -> None:
    Path("mine.csv").write_text("precious")
    for arguments in (
        ("predict", runs / "houses", tables / "rows.csv"),
        ("judge", runs / "houses"),
        ("report", runs / "houses"),
    ):
        ended = doxa(*arguments, "--out", "mine.csv")
        assert ended.code == 1
        assert "--force" in ended.message
        assert Path("mine.csv").read_text() == "precious"
    assert doxa("predict", runs / "houses", tables / "rows.csv", "--out", "mine.csv", "--force").code == 0
    assert Path("mine.csv").read_text().startswith("mean,std")
    ended = doxa("fit", tables / "houses.csv", "--target", "price", "--out", runs / "houses", *TINY)
    assert "already holds a run; go on with it by --resume" in ended.message
    ended = doxa("prune", runs / "houses", "--out", runs / "flowers")
    assert "is there already" in ended.message


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "pipe"])
def test_a_device_is_never_replaced_nor_read_for_a_mark(doxa: Command, runs: Path, tables: Path, name: str) -> None:
    os.mkfifo("pipe")
    for arguments in (
        ("report", runs / "houses", "--out", name),
        ("report", runs / "houses", "--out", name, "--force"),
        ("predict", runs / "houses", tables / "rows.csv", "--out", name, "--force"),
        ("report", name),
        ("predict", runs / "houses", name),
    ):
        ended = doxa(*arguments)
        assert ended.code == 1
        assert "a device" in ended.message or "a named pipe" in ended.message
    assert not Path("/dev/null").is_file()


def test_what_the_system_refuses_is_said_with_the_path(
    doxa: Command, runs: Path, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root may read and write everywhere, and no disk shall be filled, the refusals are made up."""
    system_open = open

    def refuse(code: int, name: str) -> None:
        def refusing(file: Any, *arguments: Any, **options: Any) -> Any:
            if Path(str(file)).name.startswith(name):
                raise OSError(code, os.strerror(code), str(file))
            return system_open(file, *arguments, **options)

        monkeypatch.setattr("builtins.open", refusing)

    rows = tables / "rows.csv"
    for code in (errno.EACCES, errno.EIO):
        refuse(code, "rows.csv")
        ended = doxa("predict", runs / "houses", rows)
        assert ended.code == 1
        assert f"{rows} cannot be read: {os.strerror(code)}" in ended.message
    for code in (errno.ENOSPC, errno.EACCES, errno.EROFS):
        refuse(code, ".doxa-")
        ended = doxa("predict", runs / "houses", rows, "--out", "here.csv")
        assert ended.code == 1
        assert f"could not write here.csv: {os.strerror(code)}" in ended.message
    refuse(errno.EACCES, "a.toml")
    monkeypatch.setattr("doxa.storage.source.require_readable", lambda *_: None)
    assert "a.toml cannot be read: Permission denied" in doxa("fit", "two_moons", "--config", "a.toml").message


def test_an_error_of_the_system_without_words_of_ours_names_its_path(
    doxa: Command, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "runs/secret")

    monkeypatch.setattr("doxa.runs.open_run", denied)
    ended = doxa("judge", runs / "houses")
    assert ended.code == 1
    assert ended.message == "doxa: runs/secret: Permission denied"


def test_a_class_that_training_never_had(doxa: Command, runs: Path) -> None:
    path = write(Path("t.csv"), flowers(names=("iris", "tulip")))
    assert "a class that training never had: 'tulip'" in doxa("judge", runs / "flowers", path).message


def test_rows_that_are_needed_and_not_kept(doxa: Command, runs: Path) -> None:
    for command in (("attack",), ("judge", "--samples", "3"), ("judge", "--shift", "two_moons")):
        ended = doxa(command[0], runs / "houses", *command[1:])
        assert "name a TABLE after the run" in ended.message
        assert "'price'" in ended.message


def test_a_table_that_is_too_small(doxa: Command) -> None:
    path = write(Path("t.csv"), {"x": np.arange(5.0).tolist(), "y": (np.arange(5.0) / 7).tolist()})
    assert "at least 10" in doxa(*fitted(path, "--target", "y")).message
    one = write(Path("one.csv"), {"c": ["a"], "x": [1], "y": [2]})
    assert "one.csv has 1 rows with a target; at least 10" in doxa(*fitted(one, "--target", "y")).message


def test_numbers_beyond_reach(doxa: Command, runs: Path) -> None:
    rows = houses()
    for column, expected_text in (
        ("size", "column 'size' is 1e+200 in row 1"),
        ("price", "the target 'price' goes up to 1e+200"),
    ):
        path = write(Path("t.csv"), {**rows, column: [1e200, *rows[column][1:]]})
        ended = doxa(*fitted(path, "--target", "price"))
        assert ended.code == 1
        assert expected_text in ended.message
    path = write(Path("t.csv"), {"size": [100.0, 1e300, "inf", "-inf"], "town": ["Rio"] * 4})
    ended = doxa("predict", runs / "houses", path)
    assert ended.code == 0
    assert "note:" not in ended.err
    assert [line.rsplit(",")[-1] for line in ended.out.splitlines()] == ["unlike", "no", "yes", "yes", "yes"]


def test_a_run_that_is_finished_is_not_harmed_by_other_rows(doxa: Command) -> None:
    assert doxa(*fitted(write(Path("t.csv"), houses()), "--target", "price", "-q")).code == 0
    before = Path("run/run.json").read_bytes()
    write(Path("t.csv"), houses(seed=5))
    ended = doxa(*fitted("t.csv", "--target", "price", "--resume"))
    assert ended.code == 1
    assert "was learned from other rows: t.csv has changed since" in ended.message
    assert Path("run/run.json").read_bytes() == before
    assert doxa("judge", "run", "-q").code == 0


# Of two values none is dropped without a word.


def test_two_targets_are_refused_and_the_way_out_is_told(doxa: Command, tables: Path) -> None:
    ended = doxa(*fitted(tables / "houses.csv", "--target", "price", "--target", "size"))
    assert ended.code == 2
    assert "--target is given twice" in ended.message
    assert "--drop" in ended.message
    assert not Path("run").exists()


@pytest.mark.parametrize("command", ["fit", "search", "predict", "judge", "report", "attack", "prune", "bench", "demo"])
def test_every_option_with_a_value_is_given_once_or_takes_several(command: str, doxa: Command) -> None:
    import typer

    from doxa_cli.app import app

    program: Any = typer.main.get_command(app)
    single = [p for p in program.commands[command].params if p.param_type_name == "option" and not p.multiple]
    valued = [p for p in single if not p.is_flag]
    assert valued
    for option in valued:
        name = option.opts[0]
        ended = doxa(command, name, "3", f"{name}=3", name, "4")
        assert ended.code == 2
        assert f"{name} is given 3 times" in ended.message


def test_what_takes_several_and_flags_may_come_again(doxa: Command, tables: Path) -> None:
    path = write(Path("t.csv"), {**houses(), "planet": ["Earth"] * 80, "star": ["Sun"] * 80})
    ended = doxa(*fitted(path, "--target", "price", "--drop", "planet", "--drop", "star", "--quiet", "--quiet"))
    assert ended.code == 0


@pytest.mark.parametrize(
    ("assignments", "text", "expected_text"),
    [
        (["epochs=3", "epochs=4"], "", "the setting epochs is given twice by --set; give it once"),
        (["target=a", "target=b"], "", "the setting target is given twice by --set"),
        (["kl-weight=1", "kl_weight=2"], "", "the setting kl_weight is given twice by --set"),
        (["drop=a", "drop=b"], "", r'drop is given twice by --set; give it once; several go into one, as in drop=\["'),
        ([], "kl-weight = 1\nkl_weight = 2\n", "the setting kl_weight is given twice in a.toml"),
        ([], "epochs = 1\nepochs = 2\n", "a.toml is not TOML"),
    ],
)
def test_a_setting_that_is_given_twice(assignments: list[str], text: str, expected_text: str) -> None:
    from doxa.errors import BadInput
    from doxa_cli.settings import merge_settings

    Path("a.toml").write_text(text)
    with pytest.raises(BadInput, match=expected_text):
        merge_settings(Path("a.toml"), assignments, {})
