"""Files: whole or not at all, read only if every byte is as it was written, and never executed."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import random
import re
import stat
import warnings
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

import doxa
from doxa import Belief, BrokenFile, learners, likelihoods, load, posteriors, priors
from doxa.posteriors import MeanField
from doxa.predict.belief import BELIEF
from doxa.storage.describe import describe
from doxa.storage.sealed import VERSION, canonical_json, read, sha256_of, write
from doxa.weights.layout import lay_out, untrained_tensors
from for_processes import run_script
from for_storage import overwrite


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))


X = torch.randn(6, 2, generator=torch.Generator().manual_seed(1))


def belief(prior=None) -> Belief:
    """A small belief with everything a file can hold: centred prior, groups, buffers, a likelihood's own numbers."""
    likelihood = likelihoods.gaussian_learned(0.5)
    layout, start = lay_out(net(), extra=likelihood.parameters(torch.zeros(1, 2)))
    posterior = MeanField(start, torch.tensor([-2.0, -1.0]), layout.weights_per_layer())
    prior = priors.gaussian(0.3, centre=start[: layout.random]) if prior is None else prior
    names = {s.name: "shared" for s in layout.slots}
    record = doxa.contracts.Record({"seed": 0}, [{"nll": 1.0, "kl": math.inf}])
    return Belief(net(), likelihood, posterior, layout, (untrained_tensors(net()),), prior, names, record)


def same(a: Belief, b: Belief) -> bool:
    """Whether two beliefs are equal, to the bit."""
    parts = [
        (describe(getattr(a, f.name)), describe(getattr(b, f.name)))
        for f in fields(Belief)
        if f.name not in ("net", "buffers")
    ]
    return all(x == y for x, y in parts) and describe(a.buffers) == describe(b.buffers)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    belief().save(tmp_path / "a.doxa")
    return tmp_path / "a.doxa"


def test_saving_and_loading_loses_nothing(path: Path) -> None:
    loaded = load(path, net())
    assert same(loaded, belief())
    assert torch.equal(loaded.predict(X, 5).outputs, belief().predict(X, 5).outputs)
    assert loaded.record.history == [{"nll": 1.0, "kl": math.inf}]
    loaded.save(path.with_name("b.doxa"))
    assert path.with_name("b.doxa").read_bytes() == path.read_bytes()


def test_buffers_that_hold_nan_are_told_of_unless_the_net_has_them_so(tmp_path: Path) -> None:
    path, broken = tmp_path / "a.doxa", belief()
    broken.buffers[0]["1.running_var"][0] = math.nan
    broken.save(path)
    with pytest.warns(UserWarning, match=r"1\.running_var hold NaN or infinity"):
        load(path, net())
    with torch.device("meta"):
        outline = net()
    with pytest.warns(UserWarning, match=r"1\.running_var hold NaN or infinity"):
        load(path, outline, "cpu")
    masked = net()
    masked[1].running_var[0] = math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(path, masked)


def test_the_comparison_of_beliefs_sees_one_bit(path: Path) -> None:
    """`same` is what the tests of damage rest on."""
    assert same(belief(), belief())
    changed = belief()
    changed.posterior.rho.view(torch.int32)[1] ^= 1
    assert not same(belief(), changed)
    changed = belief()
    changed.buffers[0]["1.running_mean"].view(torch.int32)[1] ^= 1
    assert not same(belief(), changed)


def test_the_file_is_safetensors_of_finite_size_and_readable_by_others(path: Path) -> None:
    """Permissions are those the user's umask gives any new file."""
    before = os.umask(0o022)
    try:
        belief().save(path.with_name("b.doxa"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.with_name("b.doxa").stat().st_mode) == 0o644
    length = int.from_bytes(path.read_bytes()[:8], "little")
    assert "__metadata__" in json.loads(path.read_bytes()[8 : 8 + length])


def test_no_flipped_byte_loads_as_something_else(path: Path) -> None:
    """Every byte of the file, one bit turned in it: refused, or without meaning and the very same belief."""
    content, original, module = bytearray(path.read_bytes()), belief(), net()
    choose = random.Random(0)
    refused = 0
    for i in range(len(content)):
        intact_byte = content[i]
        content[i] ^= 1 << choose.randrange(8)
        overwrite(path, content)
        content[i] = intact_byte
        try:
            loaded = load(path, module)
        except BrokenFile:
            refused += 1
        else:
            assert same(loaded, original), f"byte {i} changed and nobody noticed"
    assert refused > 0.99 * len(content)


def test_no_changed_byte_of_the_header_loads_as_something_else(path: Path) -> None:
    """Bytes put to others that JSON knows: digits, quotes, spaces, escapes."""
    content, original, module = bytearray(path.read_bytes()), belief(), net()
    length = 8 + int.from_bytes(content[:8], "little")
    choose = random.Random(1)
    for i in range(8, length):
        intact_byte = content[i]
        content[i] = choose.choice(b'0159abfAF"\\ \t{}[],:ue-')
        overwrite(path, content)
        content[i] = intact_byte
        try:
            loaded = load(path, module)
        except BrokenFile:
            continue
        assert same(loaded, original), f"byte {i} changed and nobody noticed"


def test_a_file_cut_short_anywhere_is_refused(path: Path) -> None:
    content = path.read_bytes()
    for length in range(len(content)):
        overwrite(path, content[:length])
        with pytest.raises(BrokenFile):
            read(path, BELIEF)
    path.write_bytes(content + b"\0")
    with pytest.raises(BrokenFile):
        read(path, BELIEF)
    path.write_bytes(content)
    assert same(load(path, net()), belief())


SAVER = """
import os, random, signal, sys, time
import torch
from doxa.storage.sealed import read, write

torch.set_num_threads(1)  # a fork has no other threads
path, choose, step = sys.argv[1], random.Random(0), 0
for kill in range(12):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        while True:
            step += 1
            write(path, "numbers", {"step": step}, {"a": torch.full((200_000,), float(step))})
            os.write(theirs, f"{step} ".encode())
    os.close(theirs)
    said = os.read(ours, 100).decode()  # the first save is done
    time.sleep(choose.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(ours, 1 << 16).decode():
        said += more
    os.close(ours)
    last = int(said.split()[-1])
    header, tensors = read(path, "numbers")
    step = header["step"]
    assert last <= step <= last + 1, (last, step)
    assert torch.equal(tensors["a"], torch.full((200_000,), float(step)))
print("kills", kill + 1, "saves", step)
"""


def test_a_killed_process_leaves_a_whole_file(tmp_path: Path) -> None:
    """Twelve times kill -9 in the midst of saving in a loop: what was last reported saved, or the next, is there."""
    done = run_script(SAVER, tmp_path / "a.doxa", environment=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    assert re.match(r"kills 12 saves \d\d", done.stdout)


# Nothing in a file is executed.


def test_the_source_has_no_pickle() -> None:
    source = Path(doxa.__file__).parent
    forbidden = re.compile(
        r"\b(pickle|cPickle|dill|cloudpickle|joblib|marshal|shelve)\b|torch\.(load|save)\b|\beval\(|exec\("
    )
    allowed = {("eval(", "net.eval()")}
    # A search's workers get a copy of it, and messages, from the process that started them, as every argument of a
    # process travels. No file is read there, and none is written.
    copies = [source / "search" / "engines" / name for name in ("follower.py", "channel.py")]
    for file in copies:
        assert not re.search(r"open\(|Path|PathLike|read_bytes|torch\.load\((?!io\.BytesIO\()", file.read_text())
    for file in source.rglob("*.py"):
        if file in copies:
            continue
        for line in file.read_text().splitlines():
            code = re.sub(r'""".*|#.*|".*?"', "", line)
            match = forbidden.search(code)
            assert match is None or any(match[0] == word and call in line for word, call in allowed), (file, line)


class Bomb:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("wrap", [lambda bomb: pickle.dumps(bomb), lambda bomb: _torch_save(bomb)])
def test_a_pickle_is_refused_and_not_executed(wrap, tmp_path: Path) -> None:
    path, mark = tmp_path / "a.doxa", tmp_path / "executed"
    path.write_bytes(wrap(Bomb(mark)))
    with pytest.raises(BrokenFile, match="not a Doxa file"):
        load(path, net())
    assert not mark.exists()
    pickle.loads(pickle.dumps(Bomb(mark)))
    assert mark.exists(), "the bomb itself works"


def _torch_save(value: object) -> bytes:
    import io

    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def sealed(header: object, tensors: dict[str, Tensor], text: str | None = None) -> bytes:
    """A file with any header, and the SHA-256 that belongs to it: what someone could write who means harm."""
    text = canonical_json(header) if text is None else text
    return to_bytes(tensors, metadata={"doxa": canonical_json({"header": text, "sha256": sha256_of(text, tensors)})})


def test_a_file_from_the_future_is_refused(path: Path) -> None:
    header, tensors = read(path, BELIEF)
    path.write_bytes(sealed(header, tensors))
    assert same(load(path, net()), belief()), "the forger's hand is good enough"
    path.write_bytes(sealed({**header, "version": VERSION + 1}, tensors))
    with pytest.raises(BrokenFile, match=f"format version {VERSION + 1}; this Doxa reads up to {VERSION}: upgrade"):
        load(path, net())


def test_another_safetensors_file_is_refused(path: Path) -> None:
    for metadata in (
        None,
        {"format": "pt"},
        {"doxa": "{}"},
        {"doxa": "[]"},
        {"doxa": "not json"},
        {"doxa": "[" * 10000},
    ):
        path.write_bytes(to_bytes({"weight": torch.ones(2)}, metadata=metadata))
        with pytest.raises(BrokenFile, match="not one written by Doxa"):
            load(path, net())


@pytest.mark.parametrize(
    "text",
    ["[]", "null", "1", '"a"', "{}", '{"version":1}', '{"version":"a","format":"b"}', '{"version":null}', "[" * 10000],
)
def test_a_header_that_makes_no_sense_is_refused(text: str, path: Path) -> None:
    path.write_bytes(sealed(None, {"weight": torch.ones(2)}, text))
    with pytest.raises(BrokenFile, match="header that Doxa never writes"):
        read(path, BELIEF)


@pytest.mark.parametrize(
    "value",
    [
        {"is": "os.system", "command": "true"},
        {"is": "priors.nothing"},
        {"is": "builtins.eval"},
        {"is": 3},
        {"is": None},
        {},
        {"is": "priors.gaussian", "scale": -1.0},
        {"is": "priors.gaussian", "wrong": 1.0},
        {"is": "priors.gaussian", "scale": {"tensor": "nothing"}},
        {"is": "priors.gaussian", "scale": {"tensor": {}}},
        {"is": "priors.__class__"},
    ],
)
def test_a_header_that_names_what_it_should_not_is_refused(value: object, path: Path) -> None:
    header, tensors = read(path, BELIEF)
    path.write_bytes(sealed({**header, "prior": value}, tensors))
    with pytest.raises(BrokenFile, match="the file"):
        load(path, net())


# What a file can hold.


def test_a_belief_can_be_copied_and_loaded_into_a_net_of_another_precision(path: Path) -> None:
    twin = copy.deepcopy(belief())
    assert same(twin, belief())
    twin.posterior.mean.zero_()
    assert not same(twin, belief())
    loaded = load(path, net().double())
    assert loaded.posterior.mean.dtype == torch.float32
    assert torch.equal(loaded.predict(X, 5).outputs, belief().predict(X, 5).outputs)


def test_a_belief_in_double_precision_is_kept_so(tmp_path: Path) -> None:
    module = net().double()
    x = X.double()
    learner = learners.variational(priors.gaussian(1.0))
    learned = doxa.fit(module, (x, x), learner=learner, likelihood=likelihoods.gaussian_learned(), epochs=2)
    learned.save(tmp_path / "a.doxa")
    again = load(tmp_path / "a.doxa", net().double())
    assert again.posterior.mean.dtype == torch.float64
    assert same(learned, again)
    assert torch.equal(learned.predict(x, 3).outputs, again.predict(x, 3).outputs)


@pytest.mark.parametrize("name", priors.TABLE)
def test_centred_priors_survive(name: str, tmp_path: Path) -> None:
    layout, start = lay_out(net())
    prior = priors.TABLE[name](centre=start[: layout.random])
    belief(prior).save(tmp_path / "a.doxa")
    loaded_prior = load(tmp_path / "a.doxa", net()).prior
    assert type(loaded_prior) is type(prior)
    w = torch.linspace(-1, 1, layout.random)
    assert torch.equal(loaded_prior.log_prob(w), prior.log_prob(w))
    assert not torch.equal(loaded_prior.log_prob(w), priors.TABLE[name]().log_prob(w))


def test_a_scale_for_each_weight_survives(tmp_path: Path) -> None:
    layout, _ = lay_out(net())
    prior = priors.gaussian(torch.rand(layout.random) + 0.1)
    belief(prior).save(tmp_path / "a.doxa")
    assert torch.equal(load(tmp_path / "a.doxa", net()).prior.scale, prior.scale)


def test_a_prior_centred_on_a_net_is_saved_as_its_weights(tmp_path: Path) -> None:
    learner = learners.variational(priors.gaussian(0.1, centre=net()))
    learned = doxa.fit(
        net(), (X, X), learner=learner, likelihood=likelihoods.gaussian(1.0), epochs=1, checkpoint=tmp_path
    )
    again = load(tmp_path / "belief.doxa", net())
    layout, start = lay_out(net())
    assert torch.equal(again.prior.centre, start[: layout.random])
    assert same(learned, again)


@dataclass(frozen=True)
class Cauchy:
    """A prior of the user's own."""

    width: float | Tensor = 1.0

    def log_prob(self, w: Tensor) -> Tensor:
        return -torch.as_tensor(self.width * math.pi).log() - (w / self.width).square().log1p()

    def grad_log_prob(self, w: Tensor) -> Tensor:
        return -2 * w / (self.width**2 + w.square())


def fitted(prior, folder: Path | None = None, resume: bool = False) -> Belief:
    return doxa.fit(
        net(),
        (X, X),
        learner=learners.variational(prior),
        likelihood=likelihoods.gaussian(1.0),
        epochs=2,
        checkpoint=folder,
        resume=resume,
    )


def test_a_prior_of_one_s_own_is_saved_once_it_is_in_the_table(tmp_path: Path, monkeypatch) -> None:
    """Forgetting to enter it loses nothing: the run's checkpoint stands, and gives the belief after all."""
    with pytest.raises(doxa.BadInput, match=r"a Cauchy cannot be saved.*doxa.priors.register"):
        fitted(Cauchy(0.5), tmp_path)
    monkeypatch.setitem(priors.TABLE, "cauchy", Cauchy)
    resumed = fitted(Cauchy(0.5), tmp_path, resume=True)
    loaded = load(tmp_path / "belief.doxa", net())
    assert loaded.prior == Cauchy(0.5)
    assert same(loaded, resumed)
    assert torch.equal(loaded.posterior.mean, fitted(Cauchy(0.5)).posterior.mean)
    monkeypatch.undo()
    with pytest.raises(BrokenFile, match=r"names 'priors.cauchy'.*register it first"):
        load(tmp_path / "belief.doxa", net())


def test_a_prior_that_is_no_dataclass_cannot_be_saved_and_says_so(tmp_path: Path, monkeypatch) -> None:
    class Bare:
        def log_prob(self, w: Tensor) -> Tensor:
            return -w.square() / 2

        def grad_log_prob(self, w: Tensor) -> Tensor:
            return -w

    monkeypatch.setitem(priors.TABLE, "bare", Bare)
    with pytest.raises(doxa.BadInput, match="a Bare cannot be saved: make it a dataclass"):
        fitted(Bare()).save(tmp_path / "a.doxa")


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3),
        torch.zeros(0),
        torch.zeros(2, 0, 3),
        torch.arange(6.0).reshape(2, 3).T,
        torch.tensor([True, False]),
        torch.tensor([1.5, -0.0, math.nan, math.inf]).bfloat16(),
        torch.arange(5, dtype=torch.uint8),
        torch.randn(3).expand(4, 3),
        torch.randn(3, requires_grad=True),
    ],
)
def test_tensors_of_every_kind_come_back_to_the_bit(tensor: Tensor, tmp_path: Path) -> None:
    write(tmp_path / "a", "tensors", {}, {"a": tensor, "b": tensor})
    header, loaded = read(tmp_path / "a", "tensors")
    assert header == {"format": "tensors", "version": VERSION}
    for name in "ab":
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].shape == tensor.shape
        assert sha256_of("", {"": loaded[name]}) == sha256_of("", {"": tensor.detach()})


def test_ensembles_keep_the_buffers_of_every_member(tmp_path: Path) -> None:
    learned = doxa.fit(
        net(),
        (X, X),
        learner=learners.ensemble(learners.variational(priors.gaussian(1.0)), 11),
        likelihood=likelihoods.gaussian(1.0),
        epochs=2,
        checkpoint=tmp_path,
    )
    again = load(tmp_path / "belief.doxa", net())
    assert isinstance(again.posterior, posteriors.mixture)
    assert len(again.buffers) == 11
    means = {tuple(b["1.running_mean"].tolist()) for b in again.buffers}
    assert len(means) == 11, "members saw other weights, so their statistics differ"
    assert same(learned, again)
