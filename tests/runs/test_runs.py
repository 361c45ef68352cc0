"""A run: from a table or a named set to a folder that predicts; nothing lost on the way, clear words for bad input."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from doxa import optimisers
from doxa.errors import BadInput, BrokenFile
from doxa.runs import Plan, labelled_rows, learn, load_training_data, open_run, predict_table, write_csv
from doxa.runs.plan import build_net
from doxa.tables import read

QUICK = Plan(net="mlp:16", kl_weight="0.1", epochs=12, members=2)


def houses(path: Path, rows: int = 160, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    lines = ["size,town,age,price"]
    for _ in range(rows):
        size, town, age = rng.uniform(40, 200), rng.choice(["Ghent", "Rio"]), rng.uniform(0, 90)
        price = 2000 * size + (50_000 if town == "Rio" else 0) + rng.normal(0, 20_000)
        lines.append(f"{size:.1f},{town},{age if rng.random() > 0.1 else ''},{price:.0f}")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return houses(tmp_path_factory.mktemp("data") / "houses.csv")


@pytest.fixture(scope="module")
def run(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return learn(
        load_training_data(str(table), "price"), QUICK, tmp_path_factory.mktemp("runs") / "houses", progress=False
    )


def test_rows_held_out_are_never_learned_from(table: Path) -> None:
    training_data = load_training_data(str(table), "price", hold_out=0.25)
    (x, y), (x_test, y_test) = training_data.train, training_data.test
    assert len(y_test) == 40
    assert len(y) == 120
    assert y.shape == (120, 1)
    rows = {tuple(r) for r in torch.cat([x, y], 1).tolist()}
    assert not rows & {tuple(r) for r in torch.cat([x_test, y_test], 1).tolist()}
    # Scaling is learned from the training rows alone.
    assert float(x[:, 0].mean()) == pytest.approx(0, abs=1e-5)
    assert abs(float(x_test[:, 0].mean())) > 1e-4


def test_predictions_are_in_the_units_of_the_target(run: Any, table: Path) -> None:
    predictions = predict_table(run, str(table), samples=30)
    truth = read(table).columns["price"].values  # type: ignore[union-attr]
    assert np.corrcoef(predictions["mean"], truth)[0, 1] > 0.8
    assert (predictions["lower"] < predictions["mean"]).all()
    assert (predictions["mean"] < predictions["upper"]).all()
    assert 0.8 < np.mean((predictions["lower"] <= truth) & (truth <= predictions["upper"])) < 0.99
    wide = predict_table(run, str(table), samples=30, level=0.99)
    assert (wide["upper"] - wide["lower"] > predictions["upper"] - predictions["lower"]).all()
    scores = run.result()["scores"]
    assert 10_000 < scores["rmse"]["value"] < 80_000


def test_a_run_says_the_same_when_it_is_opened_again(run: Any, table: Path) -> None:
    again = open_run(run.folder)
    predictions, predictions_again = predict_table(run, str(table)), predict_table(again, str(table))
    for name in predictions:
        np.testing.assert_array_equal(predictions[name], predictions_again[name])


def test_rows_unlike_training_are_marked(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("size,town,age\n120,Rio,40\n5000,Rio,40\n120,Atlantis,40\n")
    with pytest.raises(BadInput, match=r"row 3 .* 'Atlantis' in column 'town'.*--new allow"):
        predict_table(run, str(path))
    predictions = predict_table(run, str(path), new="allow")
    assert predictions["unlike"].tolist() == [False, True, True]
    write_csv(tmp_path / "out.csv", predictions)
    written = read(tmp_path / "out.csv")
    np.testing.assert_allclose(written.columns["mean"].values, predictions["mean"], rtol=1e-6)  # type: ignore[union-attr]
    assert list(written.columns) == ["mean", "std", "lower", "upper", "epistemic", "unlike"]


def test_a_table_at_prediction_may_have_more_columns_in_any_order_but_not_fewer(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("colour,age,town,size\nred,40,Rio,120\n")
    reordered = tmp_path / "other.csv"
    reordered.write_text("size,town,age\n120,Rio,40\n")
    assert predict_table(run, str(path))["mean"] == predict_table(run, str(reordered))["mean"]
    path.write_text("age,town\n40,Rio\n")
    with pytest.raises(BadInput, match="lacks the column 'size'"):
        predict_table(run, str(path))


def test_classes_keep_their_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    names = np.where(x > 0, "<b>yes</b>", 'no "way" 😀')
    run = learn(load_training_data({"x": x, "y": names}, "y"), QUICK, tmp_path / "r", progress=False)
    predictions = predict_table(run, {"x": [-3.0, 3.0]})
    assert predictions["label"].tolist() == ['no "way" 😀', "<b>yes</b>"]
    assert predictions["p(<b>yes</b>)"][1] > 0.8
    both = predictions["p(<b>yes</b>)"] + predictions['p(no "way" 😀)']
    np.testing.assert_allclose(both, 1, atol=1e-6)
    assert run.result()["data"]["classes"] == list(run.classes)
    xs, ys = labelled_rows(run, {"x": [-3.0, 3.0, 1.0], "y": ["<b>yes</b>", "<b>yes</b>", 'no "way" 😀']})
    assert ys.tolist() == [0, 0, 1]
    assert xs.shape == (3, 1)
    with pytest.raises(BadInput, match="a class that training never had: 'maybe'"):
        labelled_rows(run, {"x": [1.0, 2.0, 3.0, 4.0], "y": ["maybe", "maybe", "<b>yes</b>", "<b>yes</b>"]})


@pytest.mark.parametrize("learner", ["variational", "point", "dropout"])
@pytest.mark.parametrize("likelihood", ["gaussian:30000", "gaussian_learned:30000", "gaussian_per_input"])
def test_every_learner_and_likelihood_makes_a_run(learner: str, likelihood: str, table: Path, tmp_path: Path) -> None:
    plan = Plan(net="mlp:8,8", learner=learner, likelihood=likelihood, epochs=3, lr="0.01", batch_size=32)
    run = learn(load_training_data(str(table), "price"), plan, tmp_path / "r", progress=False)
    assert np.isfinite(predict_table(run, str(table), samples=5)["std"]).all()


def test_every_knob_reaches_the_learner(table: Path, tmp_path: Path) -> None:
    plan = Plan(
        net="mlp:8,batch_norm=true",
        learner="variational",
        prior="scale_mixture:0.25,1,0.01",
        posterior="mean_field:layer",
        noise="flipout",
        kl_weight="geometric",
        samples=2,
        antithetic=True,
        members=2,
        lr="cyclical:0.01,0.001,1",
        epochs=2,
        patience=1,
        batch_size=32,
    )
    run = learn(load_training_data(str(table), "price"), plan, tmp_path / "r", progress=False)
    settings = json.dumps(run.belief.record.settings)
    for expected in ("ScaleMixture", "flipout", "Geometric", "Cyclical", "0.25", "layer"):
        assert expected.lower() in settings.lower()


def test_some_weights_may_be_beliefs_and_others_points(table: Path, tmp_path: Path) -> None:
    plan = Plan(net="mlp:8,8", learner="variational", random="*.5.*", epochs=2)
    run = learn(load_training_data(str(table), "price"), plan, tmp_path / "r", progress=False)
    beliefs = {slot.name for slot in run.belief.layout.random_slots}
    assert beliefs == {n for n, _ in run.belief.net.named_parameters() if ".5." in n}
    assert len(beliefs) == 2
    assert np.isfinite(predict_table(open_run(tmp_path / "r"), str(table), samples=5)["std"]).all()


def test_every_knob_of_the_other_learners_reaches_them(table: Path, tmp_path: Path) -> None:
    plan = Plan(
        net="mlp:8,8",
        learner="dropout",
        dropout=0.25,
        input_dropout=0.125,
        members=2,
        same_start=True,
        optimiser="sgd:momentum=0.75",
        epochs=2,
    )
    settings = learn(
        load_training_data(str(table), "price"), plan, tmp_path / "r", progress=False
    ).belief.record.settings
    settings_json = json.dumps(settings)
    for expected in ('"rate": 0.25', '"input_rate": 0.125', '"restart": false', "Sgd", "0.75"):
        assert expected in settings_json
    assert Plan(autocast="bfloat16").autocast_dtype() is torch.bfloat16


@pytest.mark.parametrize(
    ("text", "optimiser"),
    [
        ("adam", optimisers.adam()),
        ("adam:betas=(0.9,0.99),eps=1e-7", optimisers.adam((0.9, 0.99), 1e-7)),
        ("adam:eps=1e-7", optimisers.adam(eps=1e-7)),
        ("sgd", optimisers.sgd()),
        ("sgd:momentum=0.9", optimisers.sgd(0.9)),
    ],
)
def test_the_optimisers_that_doxa_has_are_its_own(text: str, optimiser: Any) -> None:
    assert Plan(optimiser=text).build_optimiser() == optimiser


@pytest.mark.parametrize(
    ("text", "kind", "setting"),
    [
        ("adam:amsgrad=true", torch.optim.Adam, {"amsgrad": True, "eps": 1e-8}),
        ("adam:eps=1e-7,weight_decay=0.1", torch.optim.Adam, {"eps": 1e-7, "weight_decay": 0.1}),
        ("sgd:momentum=0.9,nesterov=true", torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
        ("adamw", torch.optim.AdamW, {"weight_decay": 0.01}),
    ],
)
def test_what_only_torch_can_do_is_done_by_torch(text: str, kind: type, setting: dict[str, Any]) -> None:
    make: Any = Plan(optimiser=text).build_optimiser()
    optimiser = make([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    assert type(optimiser) is kind
    assert setting.items() <= optimiser.defaults.items()


def test_naming_the_default_optimiser_changes_nothing(table: Path, tmp_path: Path) -> None:
    plan, training_data = Plan(net="mlp:4", learner="point", epochs=2, draws=2), load_training_data(str(table), "price")
    plain = learn(training_data, plan, tmp_path / "a", progress=False).belief
    with_adam = learn(training_data, replace(plan, optimiser="adam"), tmp_path / "b", progress=False).belief
    assert torch.equal(plain.posterior.mean, with_adam.posterior.mean)
    assert plain.record.settings == with_adam.record.settings


def test_named_sets_make_runs_too(tmp_path: Path) -> None:
    plan = Plan(net="mlp:16", learner="variational", epochs=3, lr="0.003")
    run = learn(load_training_data("digits"), plan, tmp_path / "digits", progress=False)
    assert run.result()["scores"]["error"]["value"] < 0.7
    assert run.result()["data"]["licence"]
    with pytest.raises(BadInput, match="predicts no table"):
        predict_table(run, {"x": [1.0]})
    curve = learn(load_training_data("curve"), plan, tmp_path / "curve", progress=False)
    assert "band" in curve.result()


def test_a_run_goes_on_to_the_same_bytes(table: Path, tmp_path: Path) -> None:
    training_data = load_training_data(str(table), "price")
    uninterrupted = learn(training_data, QUICK, tmp_path / "a", progress=False)

    class Stop(Exception):
        pass

    def stop(text: str) -> None:
        if "more member" in text:
            raise Stop

    with pytest.raises(Stop):
        learn(training_data, QUICK, tmp_path / "b", progress=False, say=stop)
    with pytest.raises(BadInput, match="still being written, or was interrupted"):
        open_run(tmp_path / "b")
    with pytest.raises(BadInput, match="already holds a run; go on with it by --resume"):
        learn(training_data, QUICK, tmp_path / "b", progress=False)
    with pytest.raises(BadInput, match="has another plan"):
        learn(training_data, Plan(epochs=3), tmp_path / "b", progress=False, resume=True)
    learn(training_data, QUICK, tmp_path / "b", progress=False, resume=True)
    assert (tmp_path / "b" / "belief.doxa").read_bytes() == (uninterrupted.folder / "belief.doxa").read_bytes()


def test_what_is_no_run_is_refused_in_words(run: Any, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no run"):
        open_run(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is a file"):
        open_run(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="holds no run"):
        open_run(tmp_path / "empty")
    copy = shutil.copytree(run.folder, tmp_path / "copy")
    for damage in (b"", b"{}", b"[1]", b'{"kind": "doxa run", "version": 99}', b"\xff\xfe"):
        (copy / "run.json").write_bytes(damage)
        with pytest.raises(BrokenFile):
            open_run(copy)
    shutil.copy(run.folder / "run.json", copy)
    belief_bytes = (copy / "belief.doxa").read_bytes()
    (copy / "belief.doxa").write_bytes(belief_bytes[: len(belief_bytes) // 2])
    with pytest.raises(BrokenFile):
        open_run(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": None}, "name the column"),
        ({"target": "prise"}, "did you mean 'price'"),
        ({"source": "mnits"}, "did you mean 'mnist'"),
        ({"source": "nothing.csv"}, "there is no file"),
        ({"hold_out": 0.0}, "share of rows held out"),
        ({"source": {"x": np.ones(50), "z": np.arange(50.0), "price": np.arange(50.0)}}, "'x' has the same value"),
        ({"source": {"z": np.arange(5.0), "price": np.arange(5.0) / 7}}, "at least 10"),
        ({"source": {"z": np.arange(50.0), "price": 1e9 + np.arange(50.0) / 50}}, "varies by less than"),
    ],
)
def test_material_that_cannot_be_learned_from_is_refused(change: dict[str, Any], message: str, table: Path) -> None:
    arguments = {"source": str(table), "target": "price", **change}
    with pytest.raises(BadInput, match=message):
        load_training_data(arguments.pop("source"), **arguments)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epoch": 3}, "did you mean 'epochs'"),
        ({"epochs": "three"}, "epochs must be of type"),
        ({"epochs": True}, "epochs must be of type"),
        ({"net": None}, "must not be empty"),
    ],
)
def test_settings_that_are_none_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Plan.from_settings(settings)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(learner="variatonal"), "did you mean 'variational'"),
        (Plan(net="mpl:3"), "did you mean 'mlp'"),
        (Plan(net="mlp:a"), "whole numbers"),
        (Plan(net="lenet5"), "square images"),
        (Plan(net="mlp:0"), "makes no mlp"),
        (Plan(learner="variational", likelihood="categorical"), "does not fit a regression"),
        (Plan(learner="variational", noise="lokal"), "did you mean 'local'"),
        (Plan(likelihood="gaussian"), "name a learner"),
        (Plan(kl_weight="geometri"), "did you mean 'geometric'"),
        (Plan(kl_weight="1,annealed"), "cannot do without arguments"),
        (Plan(lr="1e-3,1e-2"), "takes one number as learning rate"),
        (Plan(learner="point", optimiser="adma"), "did you mean 'adam'"),
        (Plan(learner="point", optimiser="sgd:0.1"), "name an optimiser's settings"),
        (Plan(learner="point", optimiser="sgd:momentun=1"), "makes no optimiser"),
        (Plan(learner="point", optimiser="sgd:momentum=2"), "makes no optimiser: momentum must lie between 0 and 1"),
        (Plan(learner="point", optimiser="adam:betas=0.9"), "makes no optimiser"),
        (Plan(learner="point", optimiser="adam:betas=(0.9,0.99,0.999)"), "makes no optimiser"),
        (Plan(learner="point", autocast="float8"), "no precision 'float8'"),
        (Plan(optimiser="sgd"), "name a learner"),
        (Plan(learner="variational", random="9.*"), "no weight of the net is called '9"),
    ],
)
def test_plans_that_make_no_sense_are_refused(plan: Plan, message: str, table: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=message):
        learn(load_training_data(str(table), "price"), plan, tmp_path / "r", progress=False)


def test_a_net_is_built_for_the_shape_of_the_rows() -> None:
    assert build_net("mlp:5", (1, 8, 8), 3)(torch.zeros(2, 1, 8, 8)).shape == (2, 3)
    assert build_net("lenet5", (3, 32, 32), 10)(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert build_net("mlp", (4,), 1)(torch.zeros(2, 4)).shape == (2, 1)
