"""Small nets of every kind that Doxa must take untouched, each with inputs, and what falls back to a shared draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

ROWS = 12


class Pooled(nn.Module):
    """A body on sequences [B, T, E] and a linear head on the mean over T."""

    def __init__(self, body: nn.Module, width: int = 8, pick: bool = False) -> None:
        super().__init__()
        self.body, self.head, self.pick = body, nn.Linear(width, 3), pick

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        return self.head((y[0] if self.pick else y).mean(1))


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class CrossAttention(nn.Module):
    """Queries and keys differ, so torch cuts the packed projection into pieces."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x.flip(1), x.flip(1), need_weights=False)[0]


class SequenceFirst(nn.Module):
    """Rows in the second axis, as torch's attention has them by default."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.transpose(0, 1)).transpose(0, 1)


class TiedEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.mix = nn.Linear(8, 8)
        self.out = nn.Linear(8, 11, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.tanh(self.mix(self.embed(x).mean(1))))


class Twice(nn.Module):
    """One linear layer used two times."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.layer(torch.tanh(self.layer(x)))))


@dataclass(frozen=True)
class Case:
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    shared: tuple[str, ...] = ()  # what local and flipout cannot reach
    tokens: bool = False
    classes: int = 3
    compiles: bool = True

    def net(self) -> nn.Module:
        torch.manual_seed(1)
        return self.make()

    def inputs(self, rows: int = ROWS, seed: int = 2) -> Tensor:
        source = torch.Generator().manual_seed(seed)
        if self.tokens:
            return torch.randint(0, 11, (rows, *self.shape), generator=source)
        return torch.randn(rows, *self.shape, generator=source)

    def data(self, rows: int = ROWS) -> tuple[Tensor, Tensor]:
        source = torch.Generator().manual_seed(3)
        return self.inputs(rows), torch.randint(0, self.classes, (rows,), generator=source)


def flat_head(channels: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, 3)]


def recurrent(kind: str, bidirectional: bool = False) -> tuple[str, ...]:
    ends = ("", "_reverse") if bidirectional else ("",)
    return tuple(f"body.{part}_{gate}_l0{end}" for end in ends for part in ("weight", "bias") for gate in ("ih", "hh"))


CASES: dict[str, Case] = {
    "mlp": Case(lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), (6,)),
    "batch_norm": Case(
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3, bias=False), *flat_head(4)
        ),
        (1, 6, 6),
    ),
    "strided": Case(
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.ReLU(), *flat_head(4)), (2, 7, 7)
    ),
    "dilated": Case(lambda: nn.Sequential(nn.Conv2d(2, 4, 3, dilation=2), nn.ReLU(), *flat_head(4)), (2, 8, 8)),
    "grouped": Case(lambda: nn.Sequential(nn.Conv2d(4, 6, 3, groups=2), nn.ReLU(), *flat_head(6)), (4, 6, 6)),
    "transposed": Case(
        lambda: nn.Sequential(nn.ConvTranspose2d(2, 4, 3, stride=2, groups=2), nn.ReLU(), *flat_head(4)), (2, 4, 4)
    ),
    "conv1d": Case(
        lambda: nn.Sequential(
            nn.Conv1d(2, 4, 3, padding="same"), nn.ReLU(), nn.ConvTranspose1d(4, 3, 3), nn.Flatten(), nn.Linear(24, 3)
        ),
        (2, 6),
    ),
    "conv3d": Case(
        lambda: nn.Sequential(
            nn.Conv3d(1, 2, 2), nn.ReLU(), nn.ConvTranspose3d(2, 2, 2), nn.Flatten(), nn.Linear(54, 3)
        ),
        (1, 3, 3, 3),
    ),
    "layer_norm": Case(
        lambda: nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)),
        (6,),
        ("1.weight", "1.bias"),
    ),
    "group_norm": Case(
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), *flat_head(4)),
        (1, 6, 6),
        ("1.weight", "1.bias"),
    ),
    "self_attention": Case(lambda: Pooled(SelfAttention()), (5, 8)),
    "cross_attention": Case(
        lambda: Pooled(CrossAttention()),
        (5, 8),
        ("body.attention.in_proj_weight", "body.attention.in_proj_bias"),
    ),
    "transformer": Case(
        lambda: Pooled(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)),
        (5, 8),
        ("body.norm1.weight", "body.norm1.bias", "body.norm2.weight", "body.norm2.bias"),
    ),
    "sequence_first": Case(
        lambda: Pooled(SequenceFirst()),
        (5, 8),
        ("body.layer.norm1.weight", "body.layer.norm1.bias", "body.layer.norm2.weight", "body.layer.norm2.bias"),
    ),
    "lstm": Case(
        lambda: Pooled(nn.LSTM(8, 4, batch_first=True, bidirectional=True), pick=True),
        (5, 8),
        recurrent("lstm", bidirectional=True),
        compiles=False,
    ),
    "gru": Case(lambda: Pooled(nn.GRU(8, 8, batch_first=True), pick=True), (5, 8), recurrent("gru"), compiles=False),
    "tied_embedding": Case(TiedEmbedding, (5,), ("embed.weight",), tokens=True, classes=11),
    "twice": Case(Twice, (6,), ("layer.weight", "layer.bias")),
}
