"""Files whose SHA-256 holds and whose header means harm: BrokenFile names the field, and nothing large is allocated."""

from __future__ import annotations

import copy
import math
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from doxa import BadInput, Belief, BrokenFile, load, posteriors
from doxa.posteriors.dropout import masked_weights
from doxa.predict.belief import BELIEF
from doxa.storage.sample_store import SampleStore
from doxa.storage.sealed import read
from doxa.weights.layout import untrained_tensors
from doxa.weights.probe import probe
from for_storage import X, belief, forge, net

SLOTS = (("1.running_mean", (2,)), ("1.running_var", (2,)))
MAKERS: dict[str, Callable[[], Belief]] = {
    "mean_field": belief,
    "delta": lambda: belief(lambda layout, start: posteriors.delta(start, layout.random)),
    "particles": lambda: belief(
        lambda layout, start: posteriors.particles(start + torch.arange(3.0)[:, None], layout.random), sets=3
    ),
    "shared": lambda: _shared(),
    "samples": lambda: belief(
        lambda layout, start: posteriors.samples(torch.cat([start, torch.ones(4)]).repeat(3, 1), layout.random, SLOTS)
    ),
    "dropout": lambda: belief(_dropout),
    "mixture": lambda: belief(
        lambda layout, start: posteriors.mixture(tuple(posteriors.delta(start + k, layout.random) for k in range(2))),
        sets=2,
    ),
}


def _shared() -> Belief:
    one = MAKERS["particles"]()
    return replace(one, buffers=(one.buffers[0], one.buffers[0], one.buffers[2]))


def _dropout(layout: Any, start: Tensor) -> Any:
    uses, _ = probe(net(), layout, start, untrained_tensors(net()), X)
    return posteriors.dropout(start, layout.random, masked_weights(layout, uses, 0.4, 0.2))


def put(*path: Any) -> Callable[[dict[str, Any], dict[str, Tensor]], None]:
    """Write the last word at the place in the header that the others lead to."""

    def change(header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        *way, last, value = path
        place: Any = header
        for step in way:
            place = place[step]
        place[last] = value

    return change


def drop(name: str) -> Callable[[dict[str, Any], dict[str, Tensor]], None]:
    return lambda header, tensors: header.pop(name, None) and None


def tensor(name: str, change: Callable[[Tensor], Tensor]) -> Callable[[dict[str, Any], dict[str, Tensor]], None]:
    """Put another tensor in the place of one."""
    return lambda header, tensors: tensors.update({name: change(tensors[name])})


def filled(number: float) -> Callable[[Tensor], Tensor]:
    return lambda t: torch.cat([torch.full_like(t.flatten()[:1], number), t.flatten()[1:]]).view(t.shape)


MEAN, RHO, PRIOR = "posterior.mean", "posterior.rho", "prior.centre"
LIKELIHOOD = {"is": "likelihoods.gaussian_learned", "start": 0.5}
CASES: dict[str, tuple[str, Callable[..., Any], str]] = {
    "a thousand million members": ("mean_field", put("members", 1_000_000_000), "members is 1000000000"),
    "no members": ("mean_field", put("members", 0), "members is 0"),
    "members that are true": ("mean_field", put("members", True), "members is True"),
    "members in words": ("mean_field", put("members", "1"), "members is '1'"),
    "members that are a fraction": ("mean_field", put("members", 1.0), "members is 1.0"),
    "members of all sizes": ("mean_field", put("members", 10**400), "members is 1000"),
    "no word of members": ("mean_field", drop("members"), "no 'members'"),
    "too many components": ("shared", put("components", 1_000_000_000), "components is 1000000000"),
    "a holder to come": ("shared", put("buffers", "1.running_mean", [0, 2, 2]), r"buffers.1.running_mean\[1\] is 2"),
    "a holder below": ("shared", put("buffers", "1.running_mean", [0, -1, 2]), r"\[1\] is -1"),
    "a holder that has none": ("shared", put("buffers", "1.running_mean", [0, 1, 2]), "buffers.1.* is missing"),
    "holders that are few": ("shared", put("buffers", "1.running_mean", [0]), "expected a list of 3"),
    "holders that are none": ("shared", put("buffers", "1.running_mean", {"0": 0}), "expected a list of 3"),
    "a buffer that nobody has": ("shared", lambda h, t: h["buffers"].pop("1.running_mean"), "belongs to no component"),
    "buffers in a list": ("shared", put("buffers", [1]), "buffers is"),
    "a buffer of another shape": ("mean_field", tensor("buffers.0.1.running_mean", lambda t: t[:1]), "another net"),
    "a buffer of another kind": ("mean_field", tensor("buffers.0.1.running_mean", lambda t: t.long()), "another net"),
    "a member's buffer of another shape": (
        "particles",
        tensor("buffers.1.1.running_mean", lambda t: t.repeat(2)),
        r"buffers\.1\.1\.running_mean is of another shape",
    ),
    "a member's buffer of another kind": (
        "particles",
        tensor("buffers.1.1.running_mean", lambda t: t.double()),
        r"buffers\.1\.1\.running_mean is of another shape or kind",
    ),
    "a member without a buffer": (
        "particles",
        lambda h, t: t.pop("buffers.2.1.running_var"),
        "2.1.running_var is miss",
    ),
    "a buffer of a fourth of three": (
        "particles",
        lambda h, t: t.update({"buffers.3.1.running_var": torch.ones(2)}),
        r"buffers\.3\.1\.running_var belongs to no component",
    ),
    "a buffer of no number": ("particles", lambda h, t: t.update({"buffers.x.a": torch.ones(2)}), "belongs to nothing"),
    "a tensor of nobody": ("mean_field", lambda h, t: t.update({"more": torch.ones(2)}), "'more' that belongs to noth"),
    "a prior for a likelihood": (
        "mean_field",
        put("likelihood", {"is": "priors.gaussian"}),
        "likelihood is.*no member",
    ),
    "a likelihood for a prior": ("mean_field", put("prior", LIKELIHOOD), "prior is.*no member of priors"),
    "a prior for a posterior": ("mean_field", put("posterior", {"is": "priors.gaussian"}), "posterior is.*no member"),
    "a mask for a prior": (
        "mean_field",
        put("prior", {"is": "masks.channels", "start": 0, "shape": [2], "axis": 0, "groups": 1, "rate": 0.1}),
        "no member of priors",
    ),
    "a likelihood that is a number": ("mean_field", put("likelihood", 1), "likelihood is 1"),
    "no likelihood": ("mean_field", put("likelihood", None), "likelihood is None"),
    "a posterior in a list": ("mean_field", put("posterior", [1]), "posterior is"),
    "a prior among members": ("mixture", put("posterior", "members", 0, {"is": "priors.gaussian"}), "members is"),
    "a mixture of nothing": ("mixture", put("posterior", "members", []), "no members"),
    "members as a number": ("mixture", put("posterior", "members", 2), "posterior.members is 2"),
    "a likelihood that learns nothing": ("mean_field", put("likelihood", {"is": "likelihoods.categorical"}), "learns"),
    "an axis of a fraction": (
        "mean_field",
        put("likelihood", {"is": "likelihoods.categorical", "class_axis": -1.5}),
        "likelihood.class_axis is -1.5",
    ),
    "a scale in words": ("mean_field", put("prior", "scale", "1"), "prior.scale is '1'"),
    "a scale that is true": ("mean_field", put("prior", "scale", True), "prior.scale is True"),
    "a scale that is no number": ("mean_field", put("prior", "scale", math.nan), "prior.scale is"),
    "a scale without end": ("mean_field", put("prior", "scale", math.inf), "positive, finite"),
    "a scale beyond floats": ("mean_field", put("prior", "scale", 10**400), "prior.scale is 1000"),
    "a centre in words": ("mean_field", put("prior", "centre", "a"), "prior.*centre must be a number.*got 'a'"),
    "a centre that is no number": (
        "mean_field",
        put("prior", "centre", math.nan),
        "prior.*centre must lie within ±1e30; got nan",
    ),
    "a centre of another length": ("mean_field", tensor(PRIOR, lambda t: t[:3]), "prior.centre holds"),
    "a centre of whole numbers": ("mean_field", tensor(PRIOR, lambda t: t.long()), "prior.centre holds torch.int64"),
    "a centre with NaN": ("mean_field", tensor(PRIOR, filled(math.nan)), "prior.centre holds NaN"),
    "a mean with NaN": ("mean_field", tensor(MEAN, filled(math.nan)), "mean holds NaN or infinity"),
    "a mean without end": ("mean_field", tensor(MEAN, filled(math.inf)), "mean holds NaN or infinity"),
    "a mean of whole numbers": ("mean_field", tensor(MEAN, lambda t: t.long()), "mean holds torch.int64"),
    "a mean in a table": ("mean_field", tensor(MEAN, lambda t: t[None]), "mean has shape"),
    "a mean cut short": ("mean_field", tensor(MEAN, lambda t: t[:-1]), "mean has shape"),
    "a mean that is a number": ("mean_field", put("posterior", "mean", 1.0), "posterior.mean is 1.0"),
    "a rho of one": ("mean_field", tensor(RHO, lambda t: t[:1]), r"rho has shape \[1\]; expected \[2\]"),
    "a rho of one without groups": (
        "mean_field",
        lambda h, t: (h["posterior"].update(groups=None), t.update({RHO: t[RHO][:1]})),
        r"rho has shape \[1\]; expected \[12\]",
    ),
    "a rho in a table": ("mean_field", tensor(RHO, lambda t: t[:, None]), "rho has shape"),
    "a rho with NaN": ("mean_field", tensor(RHO, filled(math.nan)), "rho holds NaN"),
    "a rho without end": ("mean_field", tensor(RHO, filled(math.inf)), "rho holds NaN or .infinity"),
    "a rho of another precision": ("mean_field", tensor(RHO, lambda t: t.double()), "rho holds torch.float64"),
    "a rho used twice": ("mean_field", put("posterior", "rho", {"tensor": MEAN}), "does not hold"),
    "a rho that is no name": ("mean_field", put("posterior", "rho", {"tensor": {}}), "does not hold"),
    "a tensor with more": ("mean_field", put("posterior", "rho", {"tensor": RHO, "is": "priors.gaussian"}), "rho"),
    "a tensor as rows": ("mean_field", put("posterior", "rho", {"stream": RHO}), "does not hold"),
    "groups that are few": ("mean_field", put("posterior", "groups", [12]), "rho has shape"),
    "groups that are too small": ("mean_field", put("posterior", "groups", [6, 5]), "11 weights are random"),
    "groups that make up for each other": ("mean_field", put("posterior", "groups", [-6, 18]), "groups are"),
    "groups without end": ("mean_field", put("posterior", "groups", [10**12, 6]), "weights are random"),
    "groups in words": ("mean_field", put("posterior", "groups", ["6", "6"]), "posterior.groups is"),
    "groups that are true": ("mean_field", put("posterior", "groups", [True, 11]), "posterior.groups is"),
    "a layout of nothing": ("mean_field", put("layout", []), "layout is"),
    "a layout by name": ("mean_field", put("layout", {"a": 1}), "layout is"),
    "a slot of two": ("mean_field", put("layout", 0, ["a", [2]]), r"layout\[0\] is .*expected a list of 3"),
    "a slot without a name": ("mean_field", put("layout", 0, 0, 7), r"layout\[0\]\[0\] is 7"),
    "a slot of negative length": ("mean_field", put("layout", 0, 1, [-2, -2]), r"layout\[0\]\[1\]\[0\] is -2"),
    "a slot of true length": ("mean_field", put("layout", 0, 1, [True, 4]), r"layout\[0\]\[1\]\[0\] is True"),
    "a slot of a fraction": ("mean_field", put("layout", 0, 1, [2.0, 2]), r"layout\[0\]\[1\]\[0\] is 2.0"),
    "a slot beyond the vector": ("mean_field", put("layout", 0, 1, [1 << 40, 1 << 40]), "does not fit the layout"),
    "a slot that is half random": ("mean_field", put("layout", 0, 2, 1), r"layout\[0\]\[2\] is 1"),
    "a slot that is not random": ("mean_field", put("layout", 0, 2, False), r"layout\[1\] is"),
    "a slot twice": ("mean_field", put("layout", 1, 0, "0.weight"), r"layout\[1\]\[0\] is '0.weight'"),
    "a slot that is a buffer": ("mean_field", put("layout", 0, 0, "1.running_mean"), "both a weight and a buffer"),
    "too many random weights": ("delta", put("posterior", "random", 13), "13 weights are random"),
    "random weights below": ("delta", put("posterior", "random", -1), "-1 weights are random"),
    "random weights in words": ("delta", put("posterior", "random", "12"), "posterior.random is '12'"),
    "random weights that are true": ("delta", put("posterior", "random", True), "posterior.random is True"),
    "particles in a row": ("particles", tensor("posterior.weights", lambda t: t[0]), "weights has shape"),
    "no particles": ("particles", tensor("posterior.weights", lambda t: t[:0]), "weights has shape"),
    "particles with NaN": ("particles", tensor("posterior.weights", filled(math.nan)), "weights holds NaN"),
    "samples of no number": ("samples", tensor("posterior.rows", filled(math.nan)), "rows holds NaN"),
    "slots below": (
        "samples",
        put("posterior", "slots", [["1.running_mean", [-2]], ["1.running_var", [6]]]),
        "slots are",
    ),
    "slots twice": (
        "samples",
        put("posterior", "slots", [["1.running_var", [2]], ["1.running_var", [2]]]),
        "slots are",
    ),
    "slots of nothing": ("samples", put("posterior", "slots", [["a", [2]], ["1.running_var", [2]]]), "no buffer"),
    "slots of a number": ("samples", put("posterior", "slots", 4), "posterior.slots is 4"),
    "slots of all sizes": ("samples", put("posterior", "slots", [["a", [10**300]]]), "cannot be built"),
    "keep that is short": (
        "samples",
        lambda h, t: (h["posterior"].update(keep={"tensor": "k"}), t.update(k=torch.ones(3, dtype=torch.bool))),
        "keep must say yes or no of each of 12",
    ),
    "keep in fractions": (
        "samples",
        lambda h, t: (h["posterior"].update(keep={"tensor": "k"}), t.update(k=torch.ones(12))),
        "keep must say yes or no",
    ),
    "like in words": ("samples", put("posterior", "like", "cuda"), "posterior.like is"),
    "masked beyond the weights": ("dropout", put("posterior", "masked", 0, "start", 1000), "masked has"),
    "masked below": ("dropout", put("posterior", "masked", 0, "start", -4), "masked has"),
    "masked twice": ("dropout", put("posterior", "masked", 1, "start", 0), "masked has"),
    "masked of another shape": ("dropout", put("posterior", "masked", 0, "shape", [4, 1]), "masked has"),
    "masked on a third axis": ("dropout", put("posterior", "masked", 0, "axis", 2), "masked has axis 2"),
    "masked in no group": ("dropout", put("posterior", "masked", 0, "groups", 0), "0 groups"),
    "masked in three of two": ("dropout", put("posterior", "masked", 0, "groups", 3), "3 groups"),
    "masked for certain": ("dropout", put("posterior", "masked", 0, "rate", 1.0), "a rate of 1.0"),
    "masked at no rate": ("dropout", put("posterior", "masked", 0, "rate", math.nan), "rate is"),
    "masked by a prior": ("dropout", put("posterior", "masked", 0, {"is": "priors.gaussian"}), "posterior.masked is"),
    "noise in a list": ("mean_field", put("noise", []), "noise is"),
    "noise by number": ("mean_field", put("noise", "0.weight", 3), "noise.0.weight is 3"),
    "a record with more": ("mean_field", put("record", "more", 3), "record is"),
    "a history by name": ("mean_field", put("record", "history", {"a": 1}), "record.history is"),
    "a history of numbers": ("mean_field", put("record", "history", [1]), r"record.history\[0\] is 1"),
    "a history in depth": ("mean_field", put("record", "history", [{"nll": [1]}]), r"record.history\[0\].nll"),
    "settings in a list": ("mean_field", put("record", "settings", []), "record.settings is"),
    "no noise": ("mean_field", drop("noise"), "no 'noise'"),
    "no record": ("mean_field", drop("record"), "no 'record'"),
    "no prior": ("mean_field", drop("prior"), "no 'prior'"),
    "no posterior": ("mean_field", drop("posterior"), "no 'posterior'"),
    "no layout": ("mean_field", drop("layout"), "no 'layout'"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, Any], dict[str, Tensor]]]:
    """What an honest file of each family holds."""
    folder = tmp_path_factory.mktemp("honest")
    contents = {}
    for name, make in MAKERS.items():
        make().save(folder / name)
        contents[name] = read(folder / name, BELIEF)
    return contents


@pytest.mark.parametrize("name", MAKERS)
def test_the_forger_s_hand_is_good_enough(name: str, files: Any, tmp_path: Path) -> None:
    loaded = load(forge(tmp_path / "a", *files[name]), net())
    assert torch.equal(loaded.predict(X, 3).outputs, MAKERS[name]().predict(X, 3).outputs)


@pytest.mark.parametrize(("name", "change", "words"), CASES.values(), ids=CASES)
def test_a_header_that_cannot_be_true_is_refused(
    name: str, change: Callable[..., Any], words: str, files: Any, tmp_path: Path
) -> None:
    header, tensors = copy.deepcopy(files[name])
    change(header, tensors)
    tensors = {k: t.contiguous() for k, t in tensors.items()}
    error = BadInput if words == "another net" else BrokenFile
    with pytest.raises(error, match=words) as refused:
        load(forge(tmp_path / "hostile.doxa", header, tensors), net())
    assert str(tmp_path / "hostile.doxa") in str(refused.value), "the file is named"
    assert len(str(refused.value)) < 800


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a limit on memory")
def test_a_small_file_takes_little_memory(files: Any, tmp_path: Path) -> None:
    """It took 18 GB, one dictionary for each member that there was not; the child may have a quarter of one more."""
    header, tensors = copy.deepcopy(files["mean_field"])
    path = forge(tmp_path / "a", {**header, "members": 1_000_000_000}, tensors)
    assert path.stat().st_size < 5000
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (1 << 28)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            load(path, net())
        except BrokenFile as error:
            os._exit(0 if "members is 1000000000" in str(error) else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_members_that_share_one_tensor_are_no_members(files: Any, tmp_path: Path) -> None:
    """A file of a few hundred kB would have a thousand million of them, and a set of buffers for each."""
    header, tensors = copy.deepcopy(files["mixture"])
    weights = torch.cat([tensors.pop(f"posterior.members.{k}.mean")[None] for k in range(2)])
    tensors["w"] = weights.repeat(500, 1)
    member = {"is": "posteriors.particles", "weights": {"tensor": "w"}, "random": 12}
    header["posterior"]["members"] = [member] * 1000
    header["members"] = 1_000_000
    with pytest.raises(BrokenFile, match=r"members\[1\].weights.*does not hold"):
        load(forge(tmp_path / "a", header, tensors), net())


def test_rows_in_a_stream_are_checked_as_rows_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.doxa"
    store = SampleStore.create(tmp_path / "chain", 22)
    store.append(torch.ones(3, 22))
    belief(lambda layout, start: posteriors.samples(store, layout.random, SLOTS)).save(path)
    header, tensors = read(path, BELIEF)
    held = {k: t if isinstance(t, Tensor) else t.read(0, 3) for k, t in tensors.items()}
    assert len(load(forge(path, header, held), net()).predict(X)) == 3
    for streams, words in (
        (["posterior.like"], "no rows of real numbers"),
        (["none"], "cannot be read"),
        ([3], "cannot be read"),
        ([], "does not hold"),
        (["posterior.rows", "buffers.0.1.running_mean"], "no rows of real numbers"),
    ):
        with pytest.raises(BrokenFile, match=words):
            load(forge(path, {**header, "streams": streams}, held), net())
    for rows in (torch.ones(3, 21), torch.ones(0, 22), torch.ones(3, 22, dtype=torch.int64)):
        with pytest.raises(BrokenFile):
            load(forge(path, header, {**held, "posterior.rows": rows}), net())


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_could_not_be_loaded_is_not_saved(number: float, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="mean holds NaN or infinity"):
        belief(lambda layout, start: posteriors.delta(filled(number)(start), layout.random)).save(tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_certainly_zero_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    pruned = MAKERS[name]().prune(0.5, refresh=X)
    pruned.save(tmp_path / "a")
    assert torch.equal(load(tmp_path / "a", net()).predict(X, 3).outputs, pruned.predict(X, 3).outputs)
