"""Architectures: the layers they are made of, the shapes they take and give."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from doxa.nets import TABLE, lenet5, mlp


def weights(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters() if p.dim() > 1)


@pytest.mark.parametrize(("width", "count"), [(400, 477_600), (800, 1_275_200), (1200, 2_392_800)])
def test_mlp_has_the_weight_counts_of_the_paper(width: int, count: int) -> None:
    assert weights(mlp(784, (width, width))) == count


def test_mlp_takes_rows_and_images_alike() -> None:
    net = mlp(784, (16,), 3)
    images = torch.randn(5, 1, 28, 28)
    assert net(images).shape == (5, 3)
    assert torch.equal(net(images), net(images.reshape(5, 784)))


def test_mlp_is_the_textbook_formula() -> None:
    net = mlp(4, (6, 5), 2, activation=nn.Tanh)
    first, second, last = (layer for layer in net if isinstance(layer, nn.Linear))
    x = torch.randn(7, 4)
    h = torch.tanh(torch.tanh(x @ first.weight.T + first.bias) @ second.weight.T + second.bias)
    assert torch.allclose(net(x), h @ last.weight.T + last.bias, atol=1e-6)


def test_mlp_without_hidden_layers_is_linear() -> None:
    net = mlp(3, (), 2)
    assert [type(layer) for layer in net] == [nn.Flatten, nn.Linear]


def test_mlp_normalises_between_each_hidden_layer_and_its_activation() -> None:
    net = mlp(4, (6, 5), 2, batch_norm=True)
    block = [nn.Linear, nn.BatchNorm1d, nn.ReLU]
    assert [type(layer) for layer in net] == [nn.Flatten, *block, *block, nn.Linear]
    assert [layer.bias is None for layer in net if isinstance(layer, nn.Linear)] == [True, True, False]
    assert net(torch.randn(8, 4)).shape == (8, 2)


@pytest.mark.parametrize(("channels", "classes", "size"), [(1, 10, 28), (3, 10, 32), (2, 7, 30), (1, 3, 4)])
def test_lenet5_gives_logits_for_any_size(channels: int, classes: int, size: int) -> None:
    assert lenet5(channels, classes, size)(torch.randn(2, channels, size, size)).shape == (2, classes)


def test_lenet5_has_the_layers_of_the_paper() -> None:
    net = lenet5()
    convolutions = [layer for layer in net if isinstance(layer, nn.Conv2d)]
    assert [layer.out_channels for layer in convolutions] == [6, 16, 120]
    assert all(layer.kernel_size == (5, 5) for layer in convolutions)
    assert [layer.out_features for layer in net if isinstance(layer, nn.Linear)] == [84, 10]
    assert sum(isinstance(layer, nn.MaxPool2d) for layer in net) == 2
    assert weights(net) == 25 * (1 * 6 + 6 * 16 + 16 * 120) + 49 * 120 * 84 + 84 * 10


@pytest.mark.parametrize("make", [lambda: mlp(0), lambda: mlp(4, (3, 0)), lambda: mlp(4, outputs=-1)])
def test_mlp_refuses_empty_layers(make) -> None:
    with pytest.raises(ValueError, match="at least one unit"):
        make()


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"size": 3}, "at least 4 pixels"), ({"channels": 0}, "one channel"), ({"classes": 0}, "one class")],
)
def test_lenet5_refuses_what_it_cannot_be(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lenet5(**settings)


def test_table_names_every_net() -> None:
    assert set(TABLE) == {"mlp", "lenet5"}
    assert (TABLE["mlp"], TABLE["lenet5"]) == (mlp, lenet5)
