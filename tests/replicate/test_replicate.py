"""Replications: what every one of them must be, its parts that are kept, and those that are quick to check."""

from __future__ import annotations

import ast
import json
import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import doxa_replicate
from doxa.errors import BadInput
from doxa_replicate import FAIL, OPEN, PASS, TABLE, Artefact, Claim, ReplicationOptions, perform, write
from doxa_replicate.charts import panel
from doxa_replicate.parts import cached_part, work_sessions
from doxa_replicate.perform import device_seconds
from doxa_replicate.show import Chart, ImageGrid, ResultTable


@pytest.mark.parametrize("name", TABLE)
def test_a_replication_says_what_it_is(name: str) -> None:
    artefact = TABLE[name]
    assert artefact.name == name
    assert artefact.title
    assert artefact.requirements
    assert all(duration for duration in artefact.durations)
    assert len({claim.name for claim in artefact.claims}) == len(artefact.claims)


def test_no_module_imports_an_artefact() -> None:
    """What two figures share stands in a library, so that either can be changed or taken away alone."""
    root = Path(doxa_replicate.__file__).parent
    trees = {module_name(root, path): ast.parse(path.read_text(encoding="utf-8")) for path in root.rglob("*.py")}
    artefacts = {name for name, tree in trees.items() if defines_artefact(tree)}
    assert len(artefacts) == len(TABLE)
    imports = [(name, target) for name, tree in trees.items() for target in sorted(imported_names(tree))]
    assert [f"{name} -> {target}" for name, target in imports if target in artefacts - {name}] == []


def module_name(root: Path, path: Path) -> str:
    """The dotted name of a package's file."""
    return ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")


def defines_artefact(tree: ast.Module) -> bool:
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return any(isinstance(target, ast.Name) and target.id == "ARTEFACT" for target in targets)


def imported_names(tree: ast.Module) -> set[str]:
    """Whatever is imported anywhere in a module: modules, and what is taken from them, each by its dotted name."""
    nodes = list(ast.walk(tree))
    sources = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    assert not any(node.level for node in sources), "relative imports are not followed"
    return (
        {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        | {str(node.module) for node in sources}
        | {f"{node.module}.{alias.name}" for node in sources for alias in node.names}
    )


@pytest.fixture(scope="module", params=TABLE)
def quick(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The quick result of a replication, made once for all that is asked of it; they share their parts."""
    # A folder for each process that runs tests: two at the same part would take each other's checkpoints away.
    return perform(TABLE[request.param], ReplicationOptions(folder=tmp_path_factory.getbasetemp() / "parts"))


def test_a_quick_result_is_json_with_its_origin_and_a_verdict_for_every_claim(
    quick: dict[str, Any], tmp_path: Path
) -> None:
    name = quick["artefact"]
    assert {v["claim"] for v in quick["verdicts"]} == {claim.name for claim in TABLE[name].claims}
    path = write(tmp_path, quick)
    assert path == tmp_path / f"{name}.quick.json"
    assert json.loads(path.read_text(encoding="utf-8")) == quick
    assert {"settings", "seeds", "versions", "device", "commit", "seconds"} <= {*quick}
    assert {v["verdict"] for v in quick["verdicts"]} <= {OPEN}, "too little to decide anything"


def test_a_quick_result_can_be_shown(quick: dict[str, Any]) -> None:
    parts = TABLE[quick["artefact"]].show(quick)
    assert parts
    for part in parts:
        assert part.title
        if isinstance(part, Chart):
            svg = ElementTree.fromstring(panel(part, "key").svg)
            assert part.caption in svg.attrib["aria-label"]
            names = [name for _, name, _ in panel(part, "key").legend]
            assert names == list(dict.fromkeys(names)), "one name, one key"
        elif isinstance(part, ResultTable):
            assert part.rows
            assert {len(row) for row in part.rows} == {len(part.headers)}
            assert all(isinstance(cell, str) for row in part.rows for cell in row)
        else:
            assert part.rows
            assert {len(row) for row in part.rows} == {len(part.headers)}


def test_error_never_stands_without_nll_and_ece(quick: dict[str, Any]) -> None:
    titles = [heading for part in TABLE[quick["artefact"]].show(quick) for heading in headings(part)]
    if any(re.search(r"(?<!standard )\berror\b", title.lower()) for title in titles):
        assert any("nll" in title.lower() for title in titles), titles
        assert any("ece" in title.lower() for title in titles), titles


def headings(part: Chart | ResultTable | ImageGrid) -> list[str]:
    """What a part says its numbers are."""
    return [part.title, part.y] if isinstance(part, Chart) else [part.title, *part.headers]


def test_a_full_result_has_the_plain_name(tmp_path: Path) -> None:
    result = perform(TABLE["weight-uncertainty/figure-2"], ReplicationOptions(full=True))
    assert write(tmp_path, result).name == "figure-2.json"


def test_a_claim_holds_or_fails_or_stays_open() -> None:
    claim = Claim("C-1", "larger is better", "value > 1")
    verdicts = [claim.judge(holds, 2.0, 0.1, [0, 1], "as written")["verdict"] for holds in (True, False, None)]
    assert verdicts == [PASS, FAIL, OPEN]


def test_a_claim_without_a_verdict_is_a_fault() -> None:
    artefact = Artefact("a", "a", ("X",), run=lambda options: {}, claims=(Claim("C-1", "", ""),))
    with pytest.raises(AssertionError, match="C-1"):
        perform(artefact, ReplicationOptions())


def test_a_part_is_made_once_for_the_same_settings(tmp_path: Path) -> None:
    calls: list[int] = []

    def make() -> dict[str, Any]:
        calls.append(1)
        return {"value": math.pi, "nothing": math.nan}

    options = ReplicationOptions(folder=tmp_path)
    first = cached_part(options, "part", {"width": 3}, make)
    assert (
        cached_part(ReplicationOptions(folder=tmp_path), "part", {"width": 3}, make)
        == first
        == {"value": math.pi, "nothing": None}
    )
    assert len(calls) == 1
    cached_part(options, "part", {"width": 4}, make)
    cached_part(ReplicationOptions(), "part", {"width": 4}, make)
    assert len(calls) == 3


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_part_that_is_asked_for_twice_is_made_and_counted_once(on_disk: bool, tmp_path: Path) -> None:
    calls: list[int] = []

    def make() -> dict[str, Any]:
        calls.append(1)
        return {}

    def run(options: ReplicationOptions) -> dict[str, Any]:
        for width in (3, 4, 3, 3):
            cached_part(options, "part", {"width": width}, make)
        return {}

    options, artefact = ReplicationOptions(folder=tmp_path if on_disk else None), Artefact("a", "a", ("X",), run=run)
    for _ in range(2):
        assert [part["part"] for part in perform(artefact, options)["parts"]] == ["part"] * 2
    assert len(calls) == 2


def test_the_time_of_work_that_was_broken_off_is_that_of_all_its_legs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others did between two legs is not its own; and what a result tells of them is what they were."""
    minute = "2026-01-01T00:{:02}:00.000+00:00".format
    clock = map(minute, (0, 10, 30, 40))
    options = ReplicationOptions(full=True, folder=tmp_path)

    def work(ends: bool) -> dict[str, Any]:
        with monkeypatch.context() as patch:
            patch.setattr("doxa_replicate.parts._now", lambda: next(clock))
            with work_sessions(tmp_path) as sessions:
                if not ends:
                    raise KeyboardInterrupt
                return {"value": 1, "legs": sessions()}

    with pytest.raises(KeyboardInterrupt):
        cached_part(options, "part", {}, lambda: work(ends=False))
    result = perform(
        Artefact("a/b", "", (), lambda options: cached_part(options, "part", {}, lambda: work(ends=True))), options
    )
    assert result["numbers"] == {"value": 1}
    (part,) = result["parts"]
    assert part["earlier"] == [[minute(0), minute(10)]]
    assert part["seconds"] == pytest.approx(600, abs=5), "the first leg, and what this one really took"


def test_what_went_on_between_two_legs_counts_once() -> None:
    minute = "2026-01-01T00:{:02}:00.000+00:00".format
    resumed = {"seconds": 1200.0, "ended": minute(40), "earlier": [[minute(0), minute(10)]]}
    between = {"seconds": 1200.0, "ended": minute(30)}
    assert device_seconds([resumed]) == 1200
    assert device_seconds([resumed, between]) == 2400


def test_time_that_parts_share_counts_once() -> None:
    minute = "2026-01-01T00:{:02}:00.000+00:00".format
    side_by_side = [{"seconds": 120.0, "ended": minute(2)}, {"seconds": 60.0, "ended": minute(2)}]
    overlapping = {"seconds": 90.0, "ended": minute(3)}
    later, unknown = {"seconds": 30.0, "ended": minute(9)}, {"seconds": 5.0}
    assert device_seconds([later, overlapping, *side_by_side, unknown]) == 180 + 30 + 5
    assert device_seconds([]) == 0


def test_sizes_and_seeds() -> None:
    assert (ReplicationOptions().by_size(1, 2), ReplicationOptions(full=True).by_size(1, 2)) == (1, 2)
    assert ReplicationOptions().seed_list(2, 5) == [0, 1]
    assert ReplicationOptions(full=True, seeds=3).seed_list(2, 5) == [0, 1, 2]


def test_peaks_of_the_mixture_are_those_worked_out_by_hand() -> None:
    artefact = TABLE["weight-uncertainty/figure-2"]
    curves = perform(artefact, ReplicationOptions())["numbers"]["columns"]["as written"]["curves"]
    (peaks,) = [each for name, each in artefact.reference.items() if name.startswith("peak of the exact")]
    for wide, row in peaks.items():
        for narrow, peak in row.items():
            assert curves[f"{wide}, {narrow}"]["peak"] == pytest.approx(peak, abs=0.006)


def test_mass_of_the_priors_is_that_of_their_formulas() -> None:
    numbers = perform(TABLE["weight-uncertainty/figure-3"], ReplicationOptions())["numbers"]
    curves = numbers["columns"]["as written"]["curves"]

    def normal(d: float, scale: float) -> float:
        return math.erf(d / scale / math.sqrt(2))

    for near in (0.05, 0.15):
        masses = {name: curve["within"][f"{near:g}"] for name, curve in curves.items()}
        assert masses["Gaussian"] == pytest.approx(normal(near, 1.0), abs=1e-5)
        assert masses["Laplace"] == pytest.approx(1 - math.exp(-near / 0.15), abs=1e-5)
        both = (normal(near, 1.0) + normal(near, math.exp(-7))) / 2
        assert masses["scale mixture"] == pytest.approx(both, abs=1e-5)
    assert curves["Laplace"]["beyond"] == pytest.approx(math.exp(-2 / 0.15), abs=1e-6)


def test_the_command_lists_and_re_creates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from doxa_cli.app import main

    assert main(["replicate", "list"]) == 0
    assert all(name in capsys.readouterr().out.replace("\n", "") for name in ["weight-uncertainty/figure-2"])
    assert main(["replicate", "weight-uncertainty/figure-2", "--out", str(tmp_path), "--quiet"]) == 0
    assert (tmp_path / "weight-uncertainty" / "figure-2.quick.json").exists()
    assert main(["replicate", "weight-uncertainty/figur-2"]) == 1
    assert "did you mean" in capsys.readouterr().err


def test_artefacts_of_one_command_share_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder, too."""
    from doxa_cli.app import main

    calls: list[int] = []

    def run(options: ReplicationOptions) -> dict[str, Any]:
        cached_part(options, "part", {}, lambda: {"value": calls.append(1)})
        return {}

    both = {name: Artefact(name, "One", (), run) for name in ("made-up/one", "made-up/two")}
    monkeypatch.setattr("doxa_replicate.TABLE", both)
    assert main(["replicate", "made-up", "--quiet"]) == 0
    assert calls == [1]


def test_an_unknown_name_is_bad_input() -> None:
    from doxa_cli.replicate import replicate

    with pytest.raises(BadInput, match="no replication 'x'"):
        replicate("x")


def test_every_claim_of_weight_uncertainty_is_judged_somewhere() -> None:
    judged_claims = {claim.name for artefact in TABLE.values() for claim in artefact.claims}
    assert {f"C-WU-{number}" for number in range(1, 30)} <= judged_claims


def test_every_claim_of_variational_optimisation_is_judged_somewhere() -> None:
    judged_claims = {claim.name for artefact in TABLE.values() for claim in artefact.claims}
    assert {f"C-VO-{number}" for number in range(1, 13)} <= judged_claims


def test_every_requirement_of_variational_optimisation_is_replicated() -> None:
    rows = {row for artefact in TABLE.values() for row in artefact.requirements}
    assert {f"VO-{number:02d}" for number in range(1, 43)} <= rows


def test_every_requirement_of_weight_uncertainty_s_experiments_is_replicated() -> None:
    rows = {row for artefact in TABLE.values() for row in artefact.requirements}
    experiments = {13, 14, 21, *range(26, 67)}
    assert {f"WU-{number}" for number in experiments} <= rows
