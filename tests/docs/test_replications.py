"""Pages of replications: complete with and without results, true to the files, and safe from what these hold."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from doxa_replicate import TABLE, Artefact, Claim, ReplicationOptions, perform, write
from doxa_replicate.show import Area, Chart, ChartLine, Dots, ImageGrid, ResultTable
from doxa_replicate.verdicts import Evidence

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
KEPT = sorted(path for path in RESULTS.glob("*/*.json") if path.parent.name not in ("bench", "engine", "parts"))
# Artefacts whose kept result is of an earlier criterion, or still to be made: the list only grows shorter.
JUDGED_BEFORE = {*(Path(__file__).parent / "judged_before.txt").read_text().split()}
X = [0.0, 0.5, 1.0]
CLAIMS = (
    Claim("C-X-2", "a <b>bold</b> claim | with *stars*", "ratio < 0.8"),
    Claim("C-X-10", "many values", "each > 0"),
    Claim("C-X-1", "cannot be decided", "none"),
)


def run(options: ReplicationOptions) -> dict[str, Any]:
    first, second, third = CLAIMS
    return {
        "settings": {"prior_scale": 0.5, "widths": [400, 800]},
        "seeds": [0, 1, 2],
        "verdicts": [
            first.judge(True, 0.5493, 0.021, [0, 1, 2], "as written"),
            second.judge(False, {"BNN": 8.4, "DNN": -1.25}, None, [0]),
            third.judge(None, None),
        ],
    }


def show(result: Any) -> list[Any]:
    band = [Area("5–95 %", X, X, [2.0, 2.0, 3.0], like="mean")]
    return [
        Chart("One & two", "Both rise.", "x", "y", [ChartLine("mean", X, X)], band, [Dots("data", X, X)]),
        Chart("Again", "It rises.", "x", "y", [ChartLine("mean", X, X)]),
        ResultTable("Scores", ("model", "NLL"), [["a | b", "**0.12 ± 0.03**"]], caption="Lower is better."),
        ImageGrid("Digits", "A dot.", ("image", "perturbed"), [[[[0.0, 1.0]], [[1.0, 0.0]]]]),
    ]


MADE = Artefact(
    "weight-uncertainty/figure-99",
    "A figure",
    ("X-1",),
    run,
    CLAIMS,
    reference={"lppd": {"0": -120.34, "1": -3.21}, "error": {"400": {"BNN": 1.31}}, "ratio": 0.549, "note": "one run"},
    left_open=("the rate: 1e-3",),
    departures={"full": ("three seeds",)},
    durations=("a second", "an hour"),
    show=show,
    group="regression",
)
OTHER = replace(MADE, name="weight-uncertainty/uci-study", group="new", claims=(Claim("C-X-3", "w", "c"),))


@pytest.fixture
def full_results(tmp_path: Path) -> Path:
    """A folder with a full result of the first of two made-up artefacts."""
    write(tmp_path, perform(MADE, ReplicationOptions(full=True)))
    return tmp_path


def made_up_artefacts() -> dict[str, Artefact]:
    return {each.name: each for each in (MADE, OTHER)}


def test_a_section_has_all_that_a_reader_asks_for(hook: Any, full_results: Path) -> None:
    text = hook("replications").pages(made_up_artefacts(), full_results)[
        "replications/weight-uncertainty/regression.md"
    ]
    for expected_text in (
        "# Weight uncertainty: Regression",
        "## Figure 99 { #figure-99 }",
        "| lppd | document |",
        "| 0 | −120.34 |",
        "| error | BNN |",
        "Ratio: 0.549.",
        "One run.",
        "the rate: 1e-3",
        "three seeds",
        "doxa replicate weight-uncertainty/figure-99 --full --out results",
        "`results/weight-uncertainty/figure-99.json`",
        "3 seeds",
        "prior scale 0.5; widths 400, 800",
        "**0.12\u00a0±\u00a00.03**",
        "a &#124; b",
        "0.549\u00a0±\u00a00.021",
        "BNN: 8.4; DNN: −1.25",
        "One &amp; two",
    ):
        assert expected_text in text, expected_text
    assert text.count('<svg class="plot') == 2
    assert text.count("data:image/png;base64,") == 2
    assert text.count('class="key"') == 4
    assert "<b>bold" not in text
    assert "*stars*" not in text


def test_a_page_without_results_says_so(hook: Any, tmp_path: Path) -> None:
    pages = hook("replications").pages(made_up_artefacts(), tmp_path)
    assert set(pages) == {f"replications/weight-uncertainty/{group}.md" for group in ("regression", "new")}
    text = pages["replications/weight-uncertainty/new.md"]
    assert "# Weight uncertainty: New" in text
    assert "## UCI study { #uci-study }" in text
    assert "Not run yet at full size, which takes an hour" in text
    assert "| C-X-3 |" in text
    assert "<svg" not in text


def test_a_quick_result_does_not_stand_for_a_full_one(hook: Any, tmp_path: Path) -> None:
    write(tmp_path, perform(MADE, ReplicationOptions()))
    text = hook("replications").pages(made_up_artefacts(), tmp_path)["replications/weight-uncertainty/regression.md"]
    assert "Not run yet" in text


def test_every_claim_is_in_the_table_in_order_and_counted(
    hook: Any, full_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replications = hook("replications")
    monkeypatch.setattr(replications, "RESULTS", full_results)
    monkeypatch.setattr(replications, "artefacts", made_up_artefacts)
    text = replications.every_claim()
    assert re.findall(r"^\| (C\S+) \|", text, re.MULTILINE) == ["C-X-1", "C-X-2", "C-X-3", "C-X-10"]
    assert re.findall(r'<b class="verdict \w+">(.+?)</b>', text) == ["OPEN", "PASS", "not run yet", "FAIL"]
    assert text.count("](replications/weight-uncertainty/regression.md#figure-99)") == 3
    assert replications.count() == "Of 4 claims 1 holds, 1 does not hold, 1 stays open and 1 is not run yet."
    listed = replications.every_replication()
    assert "](replications/weight-uncertainty/new.md#uci-study)" in listed
    assert "not run yet" in listed


def test_links_lead_to_headings_that_are_there(hook: Any, full_results: Path) -> None:
    pages, addresses = hook("replications").pages(made_up_artefacts(), full_results), hook("addresses")
    for artefact in made_up_artefacts().values():
        path, _, anchor = addresses.link(artefact).partition("](")[2].rstrip(")").partition("#")
        assert f"{{ #{anchor} }}" in pages[path]


def test_requirements_and_claims_lead_to_what_they_say(hook: Any, tmp_path: Path) -> None:
    artefact = replace(MADE, requirements=("WU-07", "G-14"))
    write(tmp_path, perform(artefact, ReplicationOptions(full=True)))
    text = hook("replications").pages({MADE.name: artefact}, tmp_path)["replications/weight-uncertainty/regression.md"]
    assert "requirements [WU-07](../../requirements.md#wu-07), [G-14](../../requirements.md#g-14)" in text
    row = {**Claim("C-WU-3", "w", "c").judge(True, 1.0), "artefact": artefact.name}
    assert "| [C-WU-3](requirements.md#c-wu-3) |" in hook("claims").as_table([row], "replications.md")
    assert "| [C-WU-3](../../requirements.md#c-wu-3) |" in hook("claims").as_table([row], "replications/a/b.md")


def test_the_headline_is_the_column_as_run(hook: Any, tmp_path: Path) -> None:
    """The other columns are judged and shown, and a claim is counted by the first alone."""
    claim = CLAIMS[0]

    def run_columns(options: ReplicationOptions) -> dict[str, Any]:
        columns = {"as written": [0.5, 0.4, 0.6], "as run": [-0.5, -0.4, -0.6], "chosen": [0.1, -0.2, 0.0]}
        return {
            "seeds": [0, 1, 2],
            "verdicts": [
                claim.decide({"a − b": Evidence(values, below=0.0)}, [0, 1, 2], column)
                for column, values in columns.items()
            ],
        }

    artefact = replace(MADE, run=run_columns, claims=(claim,), show=lambda result: ())
    write(tmp_path, perform(artefact, ReplicationOptions(full=True)))
    claims, table = hook("claims"), {artefact.name: artefact}
    assert claims.tally(table, tmp_path) == Counter({"PASS": 1})
    text = claims.as_table([*claims.all_verdict_rows(table, tmp_path)], "replications.md")
    assert re.findall(r'<b class="verdict \w+">(.+?)</b>', text) == ["FAIL", "PASS", "OPEN"]
    assert "a − b: −0.5 [−0.7484, −0.2516], to lie below 0 <small>as run; 3 seeds" in text
    assert "to lie below 0, stays open" in text
    assert re.search(r"chosen; 3 seeds; about \d+ seeds would decide it", text)


def test_what_is_open_says_what_deciding_it_would_take(hook: Any) -> None:
    undecided, decided = [0.1, -0.2, 0.0], Evidence([0.5, 0.4, 0.6], below=0.0)
    seeds_needed = Evidence(undecided, below=0.0).seeds_needed
    assert seeds_needed is not None
    row = CLAIMS[0].decide({"a": Evidence(undecided, below=0.0)}, [0, 1, 2])
    text = hook("claims").seeds_needed_text({**row, "seconds_per_seed": 60.0})
    minutes = f"{seeds_needed - 3:.3g}\N{NO-BREAK SPACE}min"
    assert text == f"about {seeds_needed} seeds would decide it, {minutes} more"
    failed = CLAIMS[0].decide({"a": Evidence(undecided, below=0.0), "b": decided}, [0, 1, 2])
    assert hook("claims").seeds_needed_text(failed) == "", "one part decided the whole"


def test_a_result_that_was_judged_otherwise_says_so(hook: Any, full_results: Path) -> None:
    stricter = replace(MADE, claims=(*CLAIMS[:2], replace(CLAIMS[2], criterion="some")))
    page = "replications/weight-uncertainty/regression.md"
    for artefact, is_older in ((MADE, False), (stricter, True)):
        text = hook("replications").pages({MADE.name: artefact}, full_results)[page]
        assert ("This result is older" in text) == is_older


def test_a_count_of_one_verdict_alone_is_a_sentence(hook: Any) -> None:
    count_sentence = hook("claims").count_sentence
    assert count_sentence(Counter({"PASS": 3})) == "Of 3 claims 3 hold."
    assert count_sentence(Counter()) == "No claim is judged yet."


def test_the_pages_of_what_is_registered_have_a_section_for_each_and_every_claim(hook: Any) -> None:
    pages = "\n".join(hook("replications").pages(TABLE, RESULTS).values())
    summary = hook("replications").every_claim()
    for artefact in TABLE.values():
        assert f"{{ #{hook('addresses').anchor(artefact)} }}" in pages
        for claim in artefact.claims:
            assert f"| {hook('addresses').link_requirements(claim.name, 'replications.md')} |" in summary


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_result_is_a_full_one_of_a_replication_as_it_is_now(path: Path) -> None:
    result = json.loads(path.read_text(encoding="utf-8"))
    artefact = TABLE[f"{path.parent.name}/{path.stem}"]
    assert result["settings"]["size"] == "full", "a quick result is not kept"
    assert result["artefact"] == artefact.name
    if artefact.name not in JUDGED_BEFORE:
        assert {(v["claim"], v["words"], v["criterion"]) for v in result["verdicts"]} == {
            (claim.name, claim.statement, claim.criterion) for claim in artefact.claims
        }
    assert path.stat().st_size < 200_000, "curves of some hundred points are enough for a page"


def test_a_claim_of_two_replications_counts_once_and_holds_only_where_both_say_so(
    hook: Any, full_results: Path
) -> None:
    tally, twin = hook("claims").tally, replace(MADE, name="weight-uncertainty/figure-98")
    assert tally({**made_up_artefacts(), twin.name: twin}, full_results) == Counter({"FAIL": 1, "not run yet": 3})
    write(full_results, perform(twin, ReplicationOptions(full=True)))
    assert tally({**made_up_artefacts(), twin.name: twin}, full_results) == Counter(
        {"FAIL": 1, "PASS": 1, "OPEN": 1, "not run yet": 1}
    )


def test_every_artefact_is_kept_at_full_size_and_nothing_else() -> None:
    kept = {f"{path.parent.name}/{path.stem}" for path in KEPT}
    assert kept | JUDGED_BEFORE == {*TABLE}
    assert kept <= {*TABLE}
    assert {json.loads(path.read_text(encoding="utf-8"))["settings"]["size"] for path in KEPT} == {"full"}


def test_the_readme_counts_what_is_kept(hook: Any) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    artefacts = [TABLE[f"{path.parent.name}/{path.stem}"] for path in KEPT]
    for document in {hook("addresses").document(artefact) for artefact in artefacts}:
        of_document = {
            artefact.name: artefact for artefact in artefacts if hook("addresses").document(artefact) == document
        }
        counts = hook("claims").tally(of_document, RESULTS)
        row = f"| {document} | {len(of_document)} | {counts['PASS']} | {counts['FAIL']} | {counts['OPEN']} |"
        assert row in readme, f"the README should say: {row}"


def test_the_pages_stand_below_the_summary_in_the_navigation(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    replications = hook("replications")
    monkeypatch.setattr(replications, "artefacts", made_up_artefacts)
    config = SimpleNamespace(nav=[{"Home": "index.md"}, {"Replications": "replications.md"}])
    below = replications.on_config(config).nav[1]["Replications"]
    assert below == [
        {"Every claim": "replications.md"},
        {
            "Weight uncertainty": [
                {"Regression": "replications/weight-uncertainty/regression.md"},
                {"New": "replications/weight-uncertainty/new.md"},
            ]
        },
    ]
