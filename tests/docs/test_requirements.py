"""The page of requirements: nothing is missing on it, and what is said to be shown is shown.

Each check is a function that gives what it finds wrong, in words: none of it here, and something in an example that is
broken on purpose.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = sorted((ROOT / "results").rglob("*.json"))
NUMBERS = {  # of requirements and of claims
    "weight-uncertainty": ("WU", 70, 29),
    "hwa": ("HWA", 27, 7),
    "foundations": ("NN", 78, 25),
    "variational-optimisation": ("VO", 42, 12),
    "robustness": ("RB", 26, 14),
}
SHARED = [*(f"G-{number:02d}" for number in range(1, 23)), "UCI-1"]  # what no document has alone
LEAST_NOTED = {"WU": 97, "HWA": 18, "NN": 11, "VO": 54, "RB": 16, "G": 20, "UCI": 1}  # may only grow
LONGEST = 160
ID_LIKE = re.compile(r"\b(?:C-)?[A-Z]{1,4}-\d+\b")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+?)(?: \{ #(\S+) \})?$", re.MULTILINE)
NAMED = re.compile(r'<\w+ id="([^"]+)"')
Documents = Mapping[str, Mapping[str, Mapping[str, Any]]]


# What a reference leads to.


def why_missing(reference: str, root: Path) -> str:
    """Why a reference leads nowhere; nothing where it leads somewhere."""
    kinds = {"tests": _no_test, "results": _no_result, "docs": _no_page}
    kind = reference.partition("/")[0]
    return kinds[kind](reference, root) if kind in kinds else f"{reference} is no test, result or page"


def _no_test(reference: str, root: Path) -> str:
    path, _, name = reference.partition("::")
    if not (root / path).is_file():
        return f"{path} is not there"
    return "" if name in functions(root / path) else f"{path} has no test {name!r}"


def _no_result(reference: str, root: Path) -> str:
    if not reference.endswith(".json") or not (root / reference).is_file():
        return f"{reference} is not there"
    return "" if reference in committed(root) else f"{reference} is not committed"


def _no_page(reference: str, root: Path) -> str:
    path, _, anchor = reference.partition("#")
    if not path.endswith(".md") or not (root / path).is_file():
        return f"{path} is not there"
    text = (root / path).read_text(encoding="utf-8")
    return f"{path} has no anchor {anchor!r}" if "#" in reference and anchor not in anchors(text) else ""


@cache
def functions(path: Path) -> set[str]:
    """The tests of a file, those in classes too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    nodes = [node for body in (tree, *classes) for node in body.body]
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@cache
def committed(root: Path) -> set[str]:
    """Files that git keeps; those that are there where it keeps none, as in a copy without its history."""
    if (root / ".git").exists() and shutil.which("git"):
        command = ["git", "-C", str(root), "ls-files", "-z", "--", "results"]
        return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0"))
    return {str(path.relative_to(root)) for path in (root / "results").rglob("*")}


def anchors(text: str) -> set[str]:
    """The places of a page that an address can name."""
    plain = FENCE.sub("", text)
    headings = [anchor or slug(heading) for heading, anchor in HEADING.findall(plain)]
    return {*headings, *NAMED.findall(plain)}


def slug(heading: str) -> str:
    """The anchor that a heading gets by itself."""
    plain = unicodedata.normalize("NFKD", heading.replace("`", "")).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


# What may be wrong with the lists.


def entries(documents: Documents) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for each in documents.values():
        yield from each.items()


def malformed(documents: Documents) -> list[str]:
    """Entries that do not say what they ask for, say it at length, or leave open whether it is shown."""
    problems = []
    for name, entry in entries(documents):
        says, references, open_part = entry.get("says", ""), entry.get("shown", []), entry.get("open", "")
        if not isinstance(says, str) or not 0 < len(says.strip()) <= LONGEST:
            problems.append(f"{name} says nothing, or more than {LONGEST} characters")
        if not isinstance(references, list) or not all(isinstance(each, str) for each in references):
            problems.append(f"{name} is shown by no list of references")
        if not isinstance(open_part, str) or not (references or open_part.strip()):
            problems.append(f"{name} is neither shown nor open")
        problems += [f"{name} has {key!r}" for key in entry if key not in ("says", "shown", "open")]
    return problems


def dead_references(documents: Documents, root: Path) -> list[str]:
    """References to what is not there."""
    reasons = [(name, why_missing(each, root)) for name, entry in entries(documents) for each in entry.get("shown", ())]
    return [f"{name}: {reason}" for name, reason in reasons if reason]


def no_longer_shown(once: Iterable[str], documents: Documents, root: Path) -> list[str]:
    """What was shown once, in whole or in part, and is shown no more by anything that is there."""
    entry_by_name = dict(entries(documents))
    references = {name: entry_by_name.get(name, {}).get("shown", ()) for name in once}
    return [
        name
        for name, references_of_name in references.items()
        if all(why_missing(each, root) for each in references_of_name)
    ]


def no_longer_in_whole(once: Mapping[str, str], documents: Documents) -> list[str]:
    """What was shown in whole once and has something open now."""
    return [name for name, entry in entries(documents) if once.get(name) == "shown" and entry.get("open")]


def not_noted(once: Mapping[str, str], documents: Documents) -> list[str]:
    """What is shown and was not written down as such, or in part where it is shown in whole."""
    return [
        name
        for name, entry in entries(documents)
        if entry.get("shown") and once.get(name) != "shown" and (name not in once or not entry.get("open"))
    ]


def taken_off(reached: Mapping[str, tuple[int, int]], counted: Mapping[str, tuple[int, int]]) -> list[str]:
    """Prefixes of which fewer IDs are noted, or noted in whole, than have been before."""
    return [
        each
        for each, before in reached.items()
        if any(now < then for now, then in zip(counted.get(each, (0, 0)), before, strict=True))
    ]


def id_differences(names: Iterable[str], prefix: str, rows: int, claims: int) -> list[str]:
    """IDs that a document should have and has not, or has and should not."""
    requirement_ids = {f"{prefix}-{number:02d}" for number in range(1, rows + 1)}
    claim_ids = {f"C-{prefix}-{number}" for number in range(1, claims + 1)}
    return sorted((requirement_ids | claim_ids) ^ set(names))


def find_ids(value: Any, pattern: re.Pattern[str]) -> set[str]:
    """Every ID in a result, wherever in it."""
    if isinstance(value, str):
        return set(pattern.findall(value))
    inside = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return set().union(*(find_ids(each, pattern) for each in inside))


def ids_without_anchor(names: Iterable[str], page: str) -> list[str]:
    """IDs that the page has no anchor for."""
    anchors_on_page = set(NAMED.findall(page))
    return sorted(name for name in names if name.lower() not in anchors_on_page)


# The lists as they are.


@pytest.fixture
def documents(hook: Any) -> Documents:
    return hook("requirements").read()


@pytest.fixture
def page(hook: Any) -> str:
    return hook("figures").fill_in((ROOT / "docs" / "requirements.md").read_text(encoding="utf-8"))


def test_every_entry_says_what_it_asks_for_and_is_shown_or_open(documents: Documents) -> None:
    assert malformed(documents) == []


def test_every_reference_leads_to_what_is_there(documents: Documents) -> None:
    assert dead_references(documents, ROOT) == []


def test_what_was_shown_once_is_shown_still(hook: Any, documents: Documents) -> None:
    assert no_longer_shown(hook("requirements").once_shown(), documents, ROOT) == []


def test_what_was_shown_in_whole_has_nothing_open(hook: Any, documents: Documents) -> None:
    assert no_longer_in_whole(hook("requirements").once_shown(), documents) == []


def test_what_is_shown_is_written_down(hook: Any, documents: Documents) -> None:
    requirements = hook("requirements")
    once = requirements.once_shown()
    assert not_noted(once, documents) == [], "run: python docs/hooks/requirements.py"
    assert set(once.values()) <= {"shown", "partly"}
    lines = (requirements.FOLDER / "shown.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(once) + len(requirements.counts_reached()), "an ID stands there twice"


def test_nothing_is_taken_off_what_was_written_down(hook: Any) -> None:
    requirements = hook("requirements")
    reached, counted = requirements.counts_reached(), requirements.count_by_prefix(requirements.once_shown())
    assert taken_off(reached, counted) == []
    assert reached == counted, "run: python docs/hooks/requirements.py"
    assert all(counted[prefix][0] >= least for prefix, least in LEAST_NOTED.items())


@pytest.mark.parametrize("name", NUMBERS)
def test_a_document_has_all_of_its_requirements_and_claims(documents: Documents, name: str) -> None:
    assert id_differences(documents.get(name, {}), *NUMBERS[name]) == []


def test_there_are_no_other_documents(hook: Any) -> None:
    requirements = hook("requirements")
    assert list(requirements.DOCUMENTS) == [*NUMBERS, "shared"]
    assert {path.stem for path in requirements.FOLDER.glob("*.toml")} <= {*NUMBERS, "shared"}
    assert [sum(each[k] for each in NUMBERS.values()) for k in (1, 2)] == [243, 87]


def test_what_the_documents_share_is_listed_once(documents: Documents) -> None:
    assert list(documents["shared"]) == SHARED


def test_the_page_has_a_place_for_every_entry_and_no_other(documents: Documents, page: str) -> None:
    assert NAMED.findall(page) == [name.lower() for name, _ in entries(documents)]


def test_every_id_of_a_replication_and_of_its_result_has_a_place_on_the_page(hook: Any, page: str) -> None:
    pattern = hook("addresses").REQUIREMENT
    results = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS]
    ids = [
        [*each.requirements, *(claim.name for claim in each.claims)]
        for each in hook("replications").artefacts().values()
    ]
    words = find_ids([results, ids], ID_LIKE)
    assert ids_without_anchor(words, page) == []
    assert [word for word in words if not pattern.fullmatch(word)] == [], "pages do not link to it"


# The checks, and the page, on examples.


SHOWN = {"says": "A.", "shown": ["tests/test_a.py::test_one", "results/a.json", "docs/a.md#on-draws"]}
PARTLY = {"says": "B.", "shown": ["docs/a.md"], "open": "The <other> half."}
OPEN = {"says": "C | D.", "shown": [], "open": "Not built."}


def make_documents(**entries: Mapping[str, Any]) -> Documents:
    return {"foundations": {name.replace("_", "-"): entry for name, entry in entries.items()}}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a test, a test in a class, a result and a page."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(
        "def test_one():\n    def test_inner(): ...\n\nclass TestA:\n    def test_two(self): ...\n\ndef helper(): ...\n"
    )
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.json").write_text("{}")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(
        '# A page\n\n## On `draws`\n\n## Given { #own }\n\n<a id="here"></a>\n\n```python\n# a comment\n```\n'
    )
    return tmp_path


@pytest.mark.parametrize(
    "reference",
    [*SHOWN["shown"], "tests/test_a.py::test_two", "docs/a.md", "docs/a.md#a-page", "docs/a.md#own", "docs/a.md#here"],
)
def test_a_reference_that_leads_somewhere(reference: str, tree: Path) -> None:
    assert why_missing(reference, tree) == ""


@pytest.mark.parametrize(
    "reference",
    [
        "tests/test_b.py::test_one",
        "tests/test_a.py::test_three",
        "tests/test_a.py::test_inner",
        "tests/test_a.py::helper",
        "tests/test_a.py",
        "results/b.json",
        "results",
        "docs/b.md",
        "docs/a.md#elsewhere",
        "docs/a.md#a-comment",
        "docs/a.md#",
        "docs",
        "src/a.py",
        "",
    ],
)
def test_a_reference_that_leads_nowhere(reference: str, tree: Path) -> None:
    assert why_missing(reference, tree) != ""
    assert len(dead_references(make_documents(NN_01={"says": "A.", "shown": [reference]}), tree)) == 1


def test_a_result_that_git_does_not_keep_leads_nowhere(tree: Path) -> None:
    subprocess.run(["git", "-C", str(tree), "init", "--quiet"], check=True)
    assert why_missing("results/a.json", tree) == "results/a.json is not committed"
    subprocess.run(["git", "-C", str(tree), "add", "results"], check=True)
    committed.cache_clear()
    assert why_missing("results/a.json", tree) == ""


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"shown": ["docs/a.md"]},
        {"says": " ", "shown": ["docs/a.md"]},
        {"says": "a" * 161, "shown": ["docs/a.md"]},
        {"says": 1, "shown": ["docs/a.md"]},
        {"says": "A."},
        {"says": "A.", "shown": []},
        {"says": "A.", "shown": [], "open": " "},
        {"says": "A.", "shown": "docs/a.md"},
        {"says": "A.", "shown": [1]},
        {"says": "A.", "show": ["docs/a.md"], "open": "All."},
    ],
)
def test_an_entry_that_is_malformed(entry: Mapping[str, Any]) -> None:
    assert malformed(make_documents(NN_01=entry)) != []


def test_entries_that_are_well_formed() -> None:
    assert (
        malformed(make_documents(NN_01=SHOWN, NN_02=PARTLY, NN_03=OPEN, NN_04={"says": "a" * 160, "open": "All."}))
        == []
    )


def test_what_is_shown_no_more_is_missed(tree: Path) -> None:
    documents = make_documents(NN_01=SHOWN, NN_02=PARTLY, NN_03=OPEN)
    assert no_longer_shown(["NN-01", "NN-02"], documents, tree) == []
    assert no_longer_shown(["NN-01", "NN-02", "NN-03", "NN-04"], documents, tree) == ["NN-03", "NN-04"]
    (tree / "docs" / "a.md").unlink()
    assert no_longer_shown(["NN-01", "NN-02"], documents, tree) == ["NN-02"]


def test_what_is_shown_in_part_only_is_missed_where_it_was_shown_in_whole() -> None:
    documents = make_documents(NN_01=SHOWN, NN_02=PARTLY, NN_03=OPEN)
    assert no_longer_in_whole({"NN-01": "shown", "NN-02": "partly"}, documents) == []
    assert no_longer_in_whole({"NN-01": "partly", "NN-02": "shown", "NN-03": "shown"}, documents) == ["NN-02", "NN-03"]


def test_a_line_that_was_taken_off_is_missed() -> None:
    reached = {"NN": (3, 2), "WU": (1, 0)}
    assert taken_off(reached, {"NN": (3, 2), "WU": (2, 1)}) == []
    assert taken_off(reached, {"NN": (2, 2), "WU": (1, 0)}) == ["NN"]
    assert taken_off(reached, {"NN": (3, 1)}) == ["NN", "WU"]


def test_what_is_newly_shown_is_noted_and_nothing_is_forgotten(hook: Any, tmp_path: Path) -> None:
    requirements = hook("requirements")
    (tmp_path / "foundations.toml").write_text(
        '[NN-01]\nsays = "A."\nshown = ["docs/a.md"]\n[NN-02]\nsays = "B."\nshown = ["docs/a.md"]\nopen = "Half."\n'
        '[NN-03]\nsays = "C."\nshown = []\nopen = "All."\n'
    )
    noted = tmp_path / "shown.txt"
    noted.write_text("NN-07 shown\nNN-02 partly\n")
    assert not_noted(requirements.once_shown(tmp_path), requirements.read(tmp_path)) == ["NN-01"]
    for _ in range(2):
        requirements.main(tmp_path)
        assert noted.read_text() == "NN 3 2\nNN-07 shown\nNN-02 partly\nNN-01 shown\n"
    assert not_noted(requirements.once_shown(tmp_path), requirements.read(tmp_path)) == []
    noted.write_text("NN 3 2\nNN-02 shown\nNN-01 partly\n")
    assert not_noted(requirements.once_shown(tmp_path), requirements.read(tmp_path)) == ["NN-01"]
    requirements.main(tmp_path)
    assert noted.read_text() == "NN 3 2\nNN-02 shown\nNN-01 shown\n"  # neither the state nor the count falls


def test_what_is_missing_or_too_much_is_counted() -> None:
    complete_ids = ["NN-01", "NN-02", "C-NN-1"]
    assert id_differences(complete_ids, "NN", 2, 1) == []
    assert id_differences(complete_ids[1:], "NN", 2, 1) == ["NN-01"]
    assert id_differences([*complete_ids, "C-NN-2"], "NN", 2, 1) == ["C-NN-2"]
    assert id_differences(["NN-1", "NN-02", "C-NN-1"], "NN", 2, 1) == ["NN-01", "NN-1"]
    assert id_differences([], "NN", 1, 1) == ["C-NN-1", "NN-01"]


def test_ids_are_found_wherever_a_result_has_them(hook: Any) -> None:
    pattern = hook("addresses").REQUIREMENT
    result = {"rows": ["WU-01", "G-14"], "by C-RB-2": [{"words": "as in HWA-09, not XWU-3"}], "seeds": [1, None, 0.5]}
    assert find_ids(result, pattern) == {"WU-01", "G-14", "C-RB-2", "HWA-09"}
    assert find_ids(result, ID_LIKE) == {"WU-01", "G-14", "C-RB-2", "HWA-09", "XWU-3"}


def test_an_id_without_a_place_is_named() -> None:
    assert ids_without_anchor(["WU-01", "C-WU-1", "WU-1"], '<a id="wu-01"></a>WU-01 C-WU-1') == ["C-WU-1", "WU-1"]


def test_documents_are_read_in_their_order(hook: Any, tmp_path: Path) -> None:
    (tmp_path / "robustness.toml").write_text('[RB-01]\nsays = "A."\nshown = []\nopen = "All."\n')
    (tmp_path / "foundations.toml").write_text('[NN-01]\nsays = "B."\nshown = ["docs/a.md"]\n')
    all_entries = hook("requirements").read(tmp_path)
    assert list(all_entries) == ["foundations", "robustness"]
    assert all_entries["foundations"] == {"NN-01": {"says": "B.", "shown": ["docs/a.md"]}}
    assert list(hook("requirements").shown_now(all_entries)) == [("NN-01", "shown")]


def test_a_row_has_its_anchor_its_words_and_its_links(hook: Any) -> None:
    requirements, artefacts = hook("requirements"), hook("replications").artefacts()
    name, artefact = next(iter(artefacts.items()))
    entry = {"says": "A.", "shown": [f"results/{name}.json", "results/bench/a.json", "tests/test_a.py::test_one"]}
    documents = make_documents(NN_01=entry, NN_02={**PARTLY, "shown": ["docs/a-page.md#on-draws"]}, C_NN_3=OPEN)
    text = requirements.sections(documents, artefacts)
    link = hook("addresses").link(artefact)
    plain = text.replace("<wbr>", "").replace("&#95;", "_")
    files = "<code>results/bench/a.json</code><br><code>tests/test_a.py::test_one</code>"
    assert f'| <a id="nn-01"></a>NN-01 | A. | {link}<br>{files} |' in plain
    assert "<code>results/<wbr>bench/<wbr>a.json</code>" in text
    partly = "[a page: on draws](a-page.md#on-draws)<br>*open: The &#60;other&#62; half.*"
    assert f'| <a id="nn-02"></a>NN-02 | B. | {partly} |' in text
    assert '| <a id="c-nn-3"></a>C-NN-3 | C &#124; D. | *open: Not built.* |' in text
    assert "## Foundations" in text
    assert "| Foundations | 3 | 1 | 1 | 1 |" in requirements.counts(documents)
