"""What the documentation says is so: its code runs and prints what is shown, and its API pages list what is public.

Python blocks of a page run in order in one namespace, in a folder of their own; so do the lines of `sh` blocks that
begin with `doxa `. A block under a comment `<!-- not run: why -->` is left alone, one under `<!-- file: NAME -->` is
written to that file. A `text` block right after one that ran is what it printed: words must agree, numbers may differ.
"""

from __future__ import annotations

import functools
import importlib
import io
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import doxa
from doxa.moved.modules import new_address

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]

FENCE = re.compile(r"^```(\w*)\s*$\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: .+? -->\s*$")
FILE = re.compile(r"<!-- file: (\S+) -->\s*$")
NUMBER = re.compile(r"[-−]?\b(\d{1,3}(,\d{3})+|\d+)(\.\d+)?(e[-+]?\d+)?\b")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the line it begins on, whether it is run, the file it is meant as."""

    language: str
    text: str
    line: int
    runs: bool
    file: str | None

    def commands(self) -> Iterator[list[str]]:
        """The command lines of a `sh` block that are Doxa's own."""
        for line in self.text.replace("\\\n", " ").splitlines():
            arguments = shlex.split(line, comments=True)
            if arguments[:1] == ["doxa"]:
                yield arguments[1:]


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page."""
    text = page.read_text(encoding="utf-8")
    page_blocks = []
    for fence in FENCE.finditer(text):
        line = text.count("\n", 0, fence.start()) + 2
        before = text[: fence.start()]
        file_name = FILE.search(before)
        page_blocks.append(
            Block(fence[1], fence[2], line, NOT_RUN.search(before) is None, file_name[1] if file_name else None)
        )
    return page_blocks


def run(page: Path, namespace: dict[str, Any]) -> Iterator[tuple[Block, str, Block | None]]:
    """Run a page; after each block that was run: the block, what it printed, and the block that says what it prints."""
    page_blocks = blocks(page)
    for block, after in zip(page_blocks, [*page_blocks[1:], None], strict=True):
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
        if not block.runs or block.language not in ("python", "sh"):
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            if block.language == "python":
                padding = "\n" * (block.line - 1)  # so that a traceback names the line of the page
                exec(compile(padding + block.text, str(page), "exec"), namespace)
            else:
                _command_lines(block)
        expected = after if after is not None and after.language == "text" else None
        yield block, printed.getvalue(), expected


def _command_lines(block: Block) -> None:
    from doxa_cli.app import main

    for arguments in block.commands():
        code = main(arguments)
        assert code == 0, f"line {block.line}: doxa {shlex.join(arguments)} ended with {code}"


def mask_numbers(text: str) -> str:
    """The words of an output in their order, without its numbers, its rules and the ends of its lines."""
    return " ".join(NUMBER.sub("#", re.sub("─+", "─", text)).split())


def ids(page: Path) -> str:
    return page.stem


@pytest.fixture
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of its own, no data but what comes along, a terminal of one width, and rooms as they are."""
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOXA_DATA", str(data))
    monkeypatch.setenv("COLUMNS", "100")
    tables = [(room.TABLE, dict(room.TABLE)) for room in (doxa.priors, doxa.likelihoods, doxa.learners)]
    yield
    for table, before in tables:  # without what a page has registered
        table.clear()
        table.update(before)


def page_namespace(page: Path) -> dict[str, Any]:
    """What a page takes for granted: the README leaves the rows to the reader."""
    if page.name != "README.md":
        return {"__name__": "__main__"}
    rows = torch.Generator().manual_seed(0)

    def random_rows(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.rand(count, 784, generator=rows), torch.randint(10, (count,), generator=rows)

    (x, y), (xv, yv), (x_test, y_test) = random_rows(128), random_rows(32), random_rows(32)
    return {"__name__": "__main__", "x": x, "y": y, "xv": xv, "yv": yv, "x_test": x_test, "y_test": y_test}


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize("page", [p for p in PAGES if any(b.language in ("python", "sh") for b in blocks(p))], ids=ids)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page: Path) -> None:
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.filterwarnings("error", ".* is now doxa", DeprecationWarning)  # an old address
        torch.manual_seed(0)
        for block, printed, expected in run(page, page_namespace(page)):
            if expected is not None:
                assert mask_numbers(printed) == mask_numbers(expected.text), f"{page.name}, line {block.line}"


def test_blocks_that_are_not_run_are_few_and_say_why() -> None:
    left_out = [b for page in PAGES for b in blocks(page) if b.language == "python" and not b.runs]
    assert len(left_out) <= 2


def test_every_room_has_a_page_with_exactly_its_public_names(hook: Any) -> None:
    rooms = hook("rooms").rooms()
    assert {"doxa", "doxa.priors", "doxa.judge", "doxa.runs", "doxa.estimators"} <= set(rooms)
    for room in rooms.values():
        module = importlib.import_module(room.path)
        public_names = [name.short_name for name in room.names] + [inner.rpartition(".")[2] for inner in room.rooms]
        if hasattr(module, "__all__"):
            assert sorted(public_names) == sorted(module.__all__), room.path
        text = hook("api").page(room, rooms)
        for name in room.names:
            is_listed = f"::: {name.defined}\n" in f"{text}\n" or f"## {name.short_name} {{ #{name.public} }}" in text
            assert is_listed, name.public


def test_a_public_name_is_described_by_the_docstring_of_what_it_names(hook: Any) -> None:
    for room in hook("rooms").rooms().values():
        for name in room.names:
            public = getattr(importlib.import_module(name.room), name.short_name)
            assert getattr(importlib.import_module(name.module), name.defined_name) is public, name.public


def test_a_new_member_of_a_room_appears_by_itself(hook: Any, tmp_path: Path) -> None:
    room = tmp_path / "doxa" / "priors"
    room.mkdir(parents=True)
    for path in hook("rooms").OPEN:
        (tmp_path / f"{path.replace('.', '/')}.py").write_text('"""Open."""\n')
    (tmp_path / "doxa" / "__init__.py").write_text('"""Doxa."""\nfrom doxa import priors\n__all__ = ["priors"]\n')
    (room / "__init__.py").write_text('"""PRIOR."""\nfrom doxa.priors.spike import spike as spike\nTABLE = {}\n')
    (room / "spike.py").write_text('class Spike:\n    """A spike."""\n\nspike = Spike\n')
    rooms = hook("rooms").rooms(tmp_path)
    assert rooms["doxa"].rooms == ("doxa.priors",)
    assert "::: doxa.priors.spike.Spike" in hook("api").page(rooms["doxa.priors"], rooms)


@pytest.mark.parametrize("page", [p for p in PAGES if "\ngenerated: true\n" in p.read_text()], ids=ids)
def test_a_generated_page_is_filled_in(hook: Any, page: Path) -> None:
    text = hook("figures").fill_in(page.read_text(encoding="utf-8"))
    assert "{{" not in text
    assert "| " in text


def test_numbers_of_the_benchmarks_are_those_of_their_files(hook: Any) -> None:
    figures = hook("figures")
    steps = figures.bench("step_cost")["steps"]
    for name, timing in steps.items():
        assert f"{timing['ratio']:.2f}" in figures.answer("step_cost")
        assert figures.cost(name) == f"{timing['ratio']:.1f}"
    best = figures.bench("mnist_ten_epochs")["rows"]
    assert any(row["weight"] == figures.mnist_best() for row in best.values())


def test_every_page_is_in_the_navigation_and_names_no_place_of_one_machine() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert f": {page.name}\n" in navigation, page.name
        assert not re.search(r"/(work|root|home|tmp|Users)/", page.read_text(encoding="utf-8")), page.name


def test_equations_in_docstrings_are_set_apart_from_sentences(hook: Any) -> None:
    pytest.importorskip("griffe", reason="the documentation's own packages are not installed")
    mark_equations = hook("docstrings").mark_equations
    docstring = "A prior.\n\np(w) = N(w; 0, s²),  s < 1\n\n`s` is positive.\nNeal (1996), Bayesian learning."
    assert mark_equations(docstring).split("\n\n")[1] == '<div class="equation">p(w) = N(w; 0, s²),  s &lt; 1</div>'
    assert mark_equations(docstring).split("\n\n")[2] == "`s` is positive.\nNeal (1996), Bayesian learning."


def test_formulas_become_mathml(hook: Any) -> None:
    pytest.importorskip("latex2mathml", reason="the documentation's own packages are not installed")
    content = hook("mathematics").on_page_content('<p><span class="arithmatex">\\(a &lt; b\\)</span></p>')
    assert content.startswith("<p><math")
    assert "arithmatex" not in content
    block = hook("mathematics").on_page_content('<div class="arithmatex">\\[\\frac{1}{N}\\]</div>')
    assert block.startswith('<div class="formula"><math')
    assert "<mfrac>" in block


def test_the_figures_of_the_readme_are_those_of_the_benchmarks(hook: Any) -> None:
    figures, readme = hook("figures"), (ROOT / "README.md").read_text(encoding="utf-8")
    cpu, gpu = figures.bench("step_cost"), figures.bench("captured_cost")
    nets = {"mlp1200": "784-1200-1200-10", "lenet5": "LeNet-5"}
    for kind, noise in (("mlp1200", "shared"), ("mlp1200", "local"), ("mlp1200", "flipout"), ("lenet5", "shared")):
        case = f"{kind} {noise} gaussian"
        best = min(timing["ratio"] for timing in cpu["rivals"][case].values())
        gpu_ratio = gpu["steps"][f"{nets[kind]}, {noise}"]["ratio"]
        assert f"| {cpu['steps'][case]['ratio']:.2f} | {best:.2f} | {gpu_ratio:.2f} |" in readme, case
    assert f"take {gpu['fleets']['100 units, 64 nets']['us_per_net']:.1f} µs a net" in readme.replace("\n", " ")


def test_public_names_are_imported_from_where_they_are_written(hook: Any) -> None:
    """A name taken from a package that only passes it on cannot be described: the site would not build."""
    rooms_hook = hook("rooms")
    for room in rooms_hook.rooms().values():
        for name in room.names:
            file = rooms_hook.SOURCE / f"{name.module.replace('.', '/')}.py"
            assert file.exists() or name.module == room.path, f"{name.public}: import it from where it is written"


FILES_AND_GROUPS = {"doxa.plugins", "doxa.priors.logistic"}  # a group of entry points; a file that is yet to be written
ADDRESS = re.compile(r"\bdoxa(?:_cli|_bench|_replicate|_settings)?(?:\.[A-Za-z_]\w*)+")
# What the API pages listed before rooms and names were moved: a room and its names in a line.
OLD_ADDRESSES = (Path(__file__).parent / "old_addresses.txt").read_text(encoding="utf-8").splitlines()


def resolve(address: str) -> Any:
    """What an address leads to: the longest module, then attributes."""
    parts = address.split(".")
    for length in range(len(parts), 0, -1):
        try:
            target = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[length:], target)
    raise AttributeError(address)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=ids)
def test_every_address_that_a_page_names_is_there(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for address in sorted(set(ADDRESS.findall(text)) - FILES_AND_GROUPS):
        resolve(address)


@pytest.mark.parametrize("line", OLD_ADDRESSES, ids=lambda line: line.partition(" ")[0])
@pytest.mark.filterwarnings("ignore:.* is now :DeprecationWarning")
def test_every_address_of_before_can_be_imported(line: str) -> None:
    room, *names = line.split()
    for name in names:
        exec(f"from {room} import {name}", {})


@pytest.fixture
def _not_imported_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without modules that were imported by their old addresses: each warns once."""
    for name in [name for name in sys.modules if new_address(name)]:
        monkeypatch.delitem(sys.modules, name)
        package, _, last_name = name.rpartition(".")
        if package in ("doxa", "doxa.judge"):
            monkeypatch.delattr(sys.modules[package], last_name)


@pytest.mark.usefixtures("_not_imported_yet")
@pytest.mark.filterwarnings("ignore:.* is now :DeprecationWarning")
@pytest.mark.parametrize(
    ("statement", "now", "warning"),
    [
        ("from doxa.search import Found as it", "doxa.search.SearchResult", "doxa.search.Found is now"),
        ("import doxa; it = doxa.sample_store", "doxa.storage.sample_store", "doxa.sample_store is now"),
        ("from doxa.judge import bandits as it", "doxa.bandits", "doxa.judge.bandits is now"),
        ("from doxa.judge.bandits import Line as it", "doxa.bandits.LinearFit", "doxa.bandits.Line is now"),
        ("from doxa.judge.bandits.play import play as it", "doxa.bandits.play.play", "doxa.judge.bandits is now"),
        ("from doxa.replicate import Ask as it", "doxa_replicate.ReplicationOptions", "doxa.replicate is now"),
    ],
)
def test_an_address_of_before_warns_and_leads_to_the_same_object(statement: str, now: str, warning: str) -> None:
    names: dict[str, Any] = {}
    with pytest.warns(DeprecationWarning, match=f"^{re.escape(warning)}"):
        exec(statement, names)
    assert names["it"] is resolve(now)


def test_a_name_that_never_was_is_still_an_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'doxa.search' has no attribute 'Fond'"):
        resolve("doxa.search.Fond")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("doxa.judge.bandit")


def test_a_module_below_an_old_address_leaves_the_names_of_the_new_one_alone() -> None:
    program = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import importlib, doxa, doxa.bandits\n"
        "below = importlib.import_module('doxa.judge.bandits.play')\n"
        "assert below is importlib.import_module('doxa.bandits.play')\n"
        "assert callable(doxa.bandits.play)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
