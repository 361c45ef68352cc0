"""Rooms: methods that do not know each other, names for one's own, plain objects, and one line to enrol a method."""

from __future__ import annotations

import ast
import difflib
import importlib
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import contracts, learners, likelihoods, nets, priors, registry
from doxa.collectors.last import Last
from doxa.contracts import Moment, Problem
from doxa.errors import BadInput
from doxa.gradients.point import PointGradient
from doxa.learners.point import Point
from doxa.likelihoods import over_draws
from doxa.posteriors import divergence
from doxa.runs import Plan
from doxa.runs.plan import build_net

ROOT = Path(__file__).parents[1]
ADDING = ROOT / "tests" / "adding"
# Folders with a table whose entries are written down one by one, without examples and names for one's own, and why.
WRITTEN_TABLES = {
    "bandits": "policies differ in what a game must have; tests/bandits/small.py pairs them with learners",
    "judge": "metrics are told apart by what they take, and tests/laws/test_metrics.py has the rows for each kind",
    "nets": "any nn.Module is a net: the table is for words on the command line, and tests/zoo.py is for the laws",
    "report.figures": "a figure is drawn from a result of its own form; tests/report/test_figures.py has them",
}
# The one method of a room that the others may name, as their default.
DEFAULTS = {"kl_weights": {"uniform"}, "learners": {"point"}}


def folders_with_a_table() -> list[str]:
    """Every folder of Doxa whose `__init__` has a `TABLE`."""
    source = ROOT / "src" / "doxa"
    return [
        ".".join(file.parent.relative_to(source).parts)
        for file in sorted(source.rglob("__init__.py"))
        if any(line.startswith(("TABLE:", "TABLE =")) for line in file.read_text(encoding="utf-8").splitlines())
    ]


ROOMS = [folder for folder in folders_with_a_table() if folder not in WRITTEN_TABLES]


def module(room: str) -> ModuleType:
    return importlib.import_module(f"doxa.{room}")


def test_every_folder_with_a_table_is_a_room_or_says_why_not() -> None:
    assert set(WRITTEN_TABLES) <= set(folders_with_a_table())
    assert {"priors", "learners", "judge.attacks"} <= set(ROOMS)
    assert not [folder for folder in WRITTEN_TABLES if hasattr(module(folder), "EXAMPLES")], "it is a room by now"


def test_the_page_draws_every_class_that_a_belief_is_made_of() -> None:
    """Each beside its own contract: those with a closed KL, and those with a density, stand by themselves."""
    page = (ROOT / "docs" / "rooms.md").read_text(encoding="utf-8")
    drawn = page.partition("## How the classes stand")[2].partition("```text")[2].partition("```")[0]
    lines = drawn.splitlines()
    for part in ("likelihood", "prior", "posterior"):
        words = drawn.partition(f"├─ {part} ")[2].partition("\n├─")[0].replace(",", " ").split()
        for member in {*module(f"{part}s").TABLE.values()}:
            assert words.count(member.__name__) == 1, member.__name__
    (closed,) = [line for line in lines if "ClosedFormPrior" in line]
    for member in priors.TABLE.values():
        assert (member.__name__ in closed) == (divergence.closed_form(member()) is not None)
    for contract in (contracts.Prior, contracts.Posterior):
        (line,) = [line for line in lines if f" {contract.__name__}: " in line]
        assert all(name in line for name in vars(contract) if not name.startswith("_")), contract.__name__


# Methods of a room do not know each other.


def imports(file: Path) -> set[str]:
    """Everything that a file imports, at its head or within functions, by its full name.

    Of a folder that only files are imported from, as in `from doxa.room import file`, these are named alone.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports by a relative name"
            folder = ROOT / "src" / str(node.module).replace(".", "/")
            only_files = all((folder / f"{alias.name}.py").exists() for alias in node.names)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
            if not only_files:
                names.add(str(node.module))
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def member_files(room: str) -> set[str]:
    """The files that a room's `__init__` imports a name in lower case from."""
    lines = ast.parse(Path(str(module(room).__file__)).read_text(encoding="utf-8")).body
    prefix = f"doxa.{room}."
    return {
        str(line.module).removeprefix(prefix)
        for line in lines
        if isinstance(line, ast.ImportFrom) and str(line.module).startswith(prefix)
        if any((alias.asname or alias.name).islower() for alias in line.names)
    }


@pytest.mark.parametrize("room", ROOMS)
def test_methods_of_a_room_do_not_import_each_other(room: str) -> None:
    folder = Path(str(module(room).__file__)).parent
    files = member_files(room)
    assert files
    for file in files:
        allowed = DEFAULTS.get(room, set()) | {file}
        forbidden = {f"doxa.{room}", *(f"doxa.{room}.{other}" for other in files - allowed)}
        assert not imports(folder / f"{file}.py") & forbidden, f"{room}/{file}.py"


# Names for one's own.


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_a_table_and_examples_of_every_entry(room: str) -> None:
    assert set(module(room).TABLE) == set(module(room).EXAMPLES)
    assert all(module(room).EXAMPLES.values())


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("name", ["", "Mine", "my own", "my-own", "2nd"])
def test_a_name_that_is_no_word_is_refused(room: str, name: str) -> None:
    before = dict(module(room).TABLE)
    with pytest.raises(BadInput, match=r"is no name for a member: use lower-case letters, digits and _"):
        module(room).register(name, object())
    assert before == module(room).TABLE


@pytest.mark.parametrize("room", ROOMS)
def test_a_name_that_is_taken_is_refused(room: str) -> None:
    before = dict(module(room).TABLE)
    for name, member in before.items():
        with pytest.raises(BadInput, match=f"the name '{name}' is taken by .*; choose another"):
            module(room).register(name, object())
        module(room).register(name, member)  # as a module does that is imported twice
    assert before == module(room).TABLE


@dataclass(frozen=True)
class Logistic:
    """p(w) = exp(−w/scale) / (scale (1 + exp(−w/scale))²)."""

    scale: float = 1.0

    def log_prob(self, w: Tensor) -> Tensor:
        z = w / self.scale
        return -z - 2 * nn.functional.softplus(-z) - math.log(self.scale)

    def grad_log_prob(self, w: Tensor) -> Tensor:
        return -torch.tanh(w / (2 * self.scale)) / self.scale


@pytest.fixture
def registered() -> Iterator[None]:
    """A prior called `mine`, for the length of a test."""
    priors.register("mine", Logistic)
    yield
    del priors.TABLE["mine"]


X = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
DATA = X, (X[:, :1] > 0).float()


def net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def fit(learner: Any, **settings: Any) -> doxa.Belief:
    settings = {"likelihood": likelihoods.gaussian(0.3), "epochs": 2, "batch_size": 6, "progress": False} | settings
    return doxa.fit(net(), DATA, learner=learner, **settings)


@pytest.mark.usefixtures("registered")
def test_a_registered_prior_is_saved_loaded_and_named_in_settings(tmp_path: Path) -> None:
    fit(learners.variational(Logistic(0.5))).save(tmp_path / "belief.doxa")
    assert doxa.load(tmp_path / "belief.doxa", net()).prior == Logistic(0.5)
    plan = Plan.from_settings({"learner": "point", "prior": "mine:0.5"})
    assert plan.build_learner(net()) == Point(Logistic(0.5))


def test_a_file_finds_the_prior_of_an_installed_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    priors.register("mine", Logistic)
    fit(learners.point(Logistic(0.5))).save(tmp_path / "belief.doxa")
    del priors.TABLE["mine"]
    plugin = SimpleNamespace(name="mine", value="mine", load=lambda: priors.register("mine", Logistic))
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: [plugin] if group == registry.PLUGINS else [])
    assert doxa.load(tmp_path / "belief.doxa", net()).prior == Logistic(0.5)
    del priors.TABLE["mine"]


def widened(shape: Sequence[int], outputs: int, width: int = 4, deep: bool = False) -> nn.Module:
    hidden = [nn.Linear(width, width), nn.ReLU()] if deep else []
    return nn.Sequential(nn.Linear(shape[0], width), nn.ReLU(), *hidden, nn.Linear(width, outputs))


def test_a_registered_net_is_made_from_words() -> None:
    nets.register("widened", widened)
    try:
        assert [*build_net("widened:7,deep=true", (3,), 2)][-1].in_features == 7
        with pytest.raises(BadInput, match=r"does not fit the net widened .*; it takes: shape, outputs, width, deep"):
            build_net("widened:narrow=true", (3,), 2)
        with pytest.raises(BadInput, match=r"there is no net 'widene'; did you mean 'widened'"):
            build_net("widene", (3,), 2)
    finally:
        del nets.TABLE["widened"]


# Plain objects, which inherit from nothing and are registered nowhere.


class PlainPrior:
    """A Cauchy prior."""

    def __init__(self, width: float = 1.0) -> None:
        self.width = width

    def log_prob(self, w: Tensor) -> Tensor:
        return -math.log(math.pi * self.width) - (w / self.width).square().log1p()

    def grad_log_prob(self, w: Tensor) -> Tensor:
        return -2 * w / (self.width**2 + w.square())


class PlainGaussian:
    """A Gaussian prior with one scale, or one for each weight."""

    def __init__(self, scale: Tensor) -> None:
        self.scale = scale

    def log_prob(self, w: Tensor) -> Tensor:
        return -0.5 * (w / self.scale).square() - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def grad_log_prob(self, w: Tensor) -> Tensor:
        return -w / self.scale.square()


@dataclass(frozen=True, eq=False)
class DataclassGaussian(PlainGaussian):
    """The same as a dataclass."""

    scale: Tensor


class PlainLikelihood:
    """Yes or no by the probit link: p(y = 1 | output) = Φ(output)."""

    discrete = True

    def parameters(self, output: Tensor) -> dict[str, Tensor]:
        return {}

    def check(self, output: Tensor, y: Tensor) -> Tensor:
        return y

    def log_prob(self, output: Tensor, y: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        return torch.special.ndtr((2 * y - 1) * output).log().sum(-1)

    def mean(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        return torch.special.ndtr(output)

    def variance(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        return torch.special.ndtr(output) * torch.special.ndtr(-output)

    def quantile(
        self, output: Tensor, q: float, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> Tensor:
        return over_draws.quantile(self.mean(output, parameters), q, weights)

    def entropy(
        self, output: Tensor, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        p = torch.cat([torch.special.ndtr(output), torch.special.ndtr(-output)], -1)
        mixed = torch.special.entr(over_draws.mean(p, weights)).sum(-1)
        return mixed, over_draws.mean(torch.special.entr(p).sum(-1), weights)


class PlainLearner:
    """MAP under a plain prior."""

    def __init__(self, width: float = 1.0) -> None:
        self.prior, self.nets, self.kind = PlainPrior(width), 1, (PlainLearner,)

    def kl_weight(self, moment: Moment) -> float:
        return 0.5

    def start(self, problem: Problem, fleet: Sequence[PlainLearner]) -> PointGradient:
        points = [Point(learner.prior, learner.kl_weight) for learner in fleet]
        return points[0].start(problem, points)

    def optimiser(self, fleet: Sequence[PlainLearner]) -> None:
        return None

    def collector(self, fleet: Sequence[PlainLearner]) -> Last:
        return Last()


def rising(moment: Moment) -> float:
    """A KL weight."""
    return (moment.step + 1) / moment.steps


def falling(moment: Moment) -> float:
    """A learning rate."""
    return 0.1 / (1 + moment.step)


PLAIN: dict[str, tuple[Any, Any]] = {  # two learners of a kind each
    "prior": (learners.variational(PlainPrior(0.5)), learners.variational(PlainPrior(2.0))),
    "prior-of-points": (learners.point(PlainPrior(0.5)), learners.point(PlainPrior(2.0))),
    "prior-of-dropout": (learners.dropout(0.2, prior=PlainPrior(0.5)), learners.dropout(0.2, prior=PlainPrior(2.0))),
    "prior-of-samples": tuple(learners.langevin(PlainPrior(width), burn_in=0.0) for width in (0.5, 2.0)),
    "kl-weight": tuple(learners.variational(priors.gaussian(s), kl_weight=rising) for s in (0.5, 2.0)),
    "learner": (PlainLearner(0.5), PlainLearner(2.0)),
    "ensemble": tuple(learners.ensemble(PlainLearner(width), 2) for width in (0.5, 2.0)),
}


@pytest.mark.parametrize("likelihood", [likelihoods.gaussian(0.3), PlainLikelihood()], ids=["gaussian", "plain"])
@pytest.mark.parametrize("name", PLAIN)
def test_plain_objects_are_learned_with_predicted_with_and_judged(name: str, likelihood: Any) -> None:
    alone = [fit(learner, likelihood=likelihood, lr=falling) for learner in PLAIN[name]]
    fleet = doxa.fleet(
        net(), DATA, learners=PLAIN[name], likelihood=likelihood, epochs=2, batch_size=6, lr=falling, progress=False
    )
    assert not torch.equal(alone[0].posterior.mean, alone[1].posterior.mean)
    predictions = doxa.predict(fleet, X, samples=3)
    for belief, expected, draws in zip(fleet, alone, predictions, strict=True):
        torch.testing.assert_close(belief.posterior.mean, expected.posterior.mean)
        torch.testing.assert_close(draws.mean, expected.predict(X, samples=3).mean)
        assert math.isfinite(doxa.judge(belief, DATA, samples=3)["nll"])


@pytest.mark.parametrize(
    "learn", [learners.variational, learners.point, learners.dropout], ids=lambda f: f.__name__.lower()
)
@pytest.mark.parametrize("scale", [torch.tensor(0.5), torch.linspace(0.2, 2.0, 21)], ids=["one", "each"])
def test_a_plain_prior_may_hold_numbers_for_each_weight(learn: Any, scale: Tensor) -> None:
    plain = PlainGaussian(scale)
    belief, expected = (fit(learn(prior=prior), lr=falling) for prior in (plain, DataclassGaussian(scale)))
    assert torch.equal(belief.posterior.mean, expected.posterior.mean)
    assert plain.scale is scale


def test_schedules_that_are_plain_functions_are_heeded() -> None:
    history = fit(learners.point(priors.gaussian(1.0), kl_weight=rising), lr=falling).record.history
    assert [row["lr"] for row in history] == pytest.approx([0.1 / 2, 0.1 / 4])
    full = fit(learners.point(priors.gaussian(0.1)), lr=falling).posterior.mean
    weighed = fit(learners.point(priors.gaussian(0.1), kl_weight=rising), lr=falling).posterior.mean
    assert not torch.equal(full, weighed)


def test_what_has_no_name_cannot_be_saved_and_says_how_to_get_one(tmp_path: Path) -> None:
    how = r"cannot be saved: make it a dataclass and register it in its room, e.g. doxa.priors.register\('mine', Mine\)"
    for belief in (fit(PlainLearner()), fit(learners.point(), likelihood=PlainLikelihood())):
        with pytest.raises(BadInput, match=how):
            belief.save(tmp_path / "belief.doxa")
        assert not [*tmp_path.iterdir()], "nothing is written by halves"


# One new file and one line.


@dataclass(frozen=True)
class Addition:
    """A file of `tests/adding` and where it goes; laws by their files, some of them picked by a word of their names."""

    file: str
    folder: str  # in src
    laws: tuple[str, ...]
    pick: str = ""
    expected: tuple[str, ...] = ()  # tests among those that must have been run on it


ADDITIONS = (
    Addition(
        "asymmetric_laplace",
        "doxa/priors",
        ("laws/test_priors.py", "laws/test_fleets.py"),
        "(test_priors or variational-local or point-map)",
        (
            "test_integrates_to_one",
            "test_slope_is_the_derivative",
            "test_closed_kl_is_exact",
            "test_closed_slopes_are_derivatives",
            "test_a_prior_can_be_centred_on_a_net",
            "test_a_member_is_what_it_is_alone",
        ),
    ),
    Addition(
        "poisson",
        "doxa/likelihoods",
        ("laws/test_likelihoods.py",),
        expected=(
            "test_densities_sum_or_integrate_to_one",
            "test_mean_and_variance_are_those_of_the_density",
            "test_a_draw_of_weight_three_is_three_draws",
            "test_a_net_is_fitted_judged_and_saved_with_it",
        ),
    ),
    Addition(
        "second_half",
        "doxa/learners",
        ("laws/test_learners.py", "laws/test_fleets.py"),
        expected=(
            "test_same_seed_same_bits_and_nothing_touched",
            "test_an_example_reaches_the_exact_answer_that_it_names",
            "test_resumed_equals_uninterrupted_byte_for_byte",
            "test_a_member_is_what_it_is_alone",
            "test_a_resumed_fleet_is_the_uninterrupted_one_to_the_byte",
        ),
    ),
    Addition(
        "random_signs",
        "doxa/judge/attacks",
        ("laws/test_attacks.py",),
        "mlp and mean_field",
        (
            "test_stays_in_its_ball_and_in_range",
            "test_radius_zero_is_the_identity",
            "test_never_lowers_the_loss_it_maximises",
        ),
    ),
    Addition(
        "mixture_peaks",
        "doxa_replicate/weight_uncertainty",
        ("replicate/test_replicate.py",),
        expected=(
            "test_a_replication_says_what_it_is",
            "test_a_quick_result_is_json_with_its_origin_and_a_verdict_for_every_claim",
            "test_a_quick_result_can_be_shown",
        ),
    ),
)


def enrol(addition: Addition, source: Path) -> None:
    """Put the file into its folder, and its line among those of a room's `__init__.py`; a replication needs none."""
    folder = source / addition.folder
    shutil.copy(ADDING / f"{addition.file}.py", folder)
    if addition.folder.startswith("doxa_replicate"):
        return
    room = addition.folder.replace("/", ".")
    line = f"from {room}.{addition.file} import {addition.file} as {addition.file}\n"
    lines = (folder / "__init__.py").read_text(encoding="utf-8").splitlines(keepends=True)
    members = [i for i, text in enumerate(lines) if text.startswith(f"from {room}.")]
    lines.insert(next((i for i in members if lines[i] > line), members[-1] + 1), line)
    (folder / "__init__.py").write_text("".join(lines), encoding="utf-8")


def sources(folder: Path) -> dict[str, str]:
    """The text of every Python file by its path."""
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}


def run_python(source: Path, *arguments: str) -> str:
    """What Python says, whose Doxa is the one in a folder."""
    run = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.file)
def test_a_method_is_added_by_one_file_and_at_most_one_line(addition: Addition, tmp_path: Path) -> None:
    """In a copy of the sources, whose laws then hold for it."""
    source = tmp_path / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    before = sources(source)
    enrol(addition, source)
    after = sources(source)
    assert set(after) - set(before) == {f"{addition.folder}/{addition.file}.py"}
    changes = [
        text
        for path, text_before in before.items()
        for text in difflib.ndiff(text_before.splitlines(), after[path].splitlines())
        if text_before != after[path] and not text.startswith("  ")
    ]
    assert len(changes) <= 1
    assert all(text.startswith(f"+ from {addition.folder.replace('/', '.')}.{addition.file} ") for text in changes)

    word = addition.file.replace("_", "-") if addition.folder.startswith("doxa_replicate") else addition.file
    report = tmp_path / "report.xml"
    pick = f"{word} and {addition.pick}" if addition.pick else word
    laws = [f"tests/{law}" for law in addition.laws]
    places = [f"--junit-xml={report}", f"--basetemp={tmp_path / 'cases'}", "-p", "no:cacheprovider"]
    run_python(source, "-m", "pytest", *laws, "-k", pick, *places)
    cases = [*ElementTree.parse(report).getroot().iter("testcase")]
    assert len(cases) >= len(addition.expected)
    assert all(word in case.attrib["name"] for case in cases)
    assert not [case.attrib["name"] for case in cases if len(case)], "failed or skipped"
    assert set(addition.expected) <= {case.attrib["name"].partition("[")[0] for case in cases}
    if addition.folder == "doxa/learners":
        names = run_python(source, "-c", "from doxa_settings.names import LEARNERS; print(*LEARNERS)").split()
        assert addition.file in names
