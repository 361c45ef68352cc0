"""Random words that are a function of a seed and a counter alone, and normal numbers made of them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from doxa.native import at, kernel, written

WORD = 0xFFFFFFFF
LANES = 256
GROUP = 4 * LANES


def words(seed: int, counter: Tensor, high: Tensor | int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four 32-bit words, as int64, that Philox4x32-10 makes of a 64-bit seed and a counter below 2⁶³.

    `high` is the counter's upper half, 64 bits more. Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3.
    """
    upper = torch.as_tensor(high, device=counter.device).expand_as(counter)
    a, b, c, d = counter & WORD, counter >> 32, upper & WORD, upper >> 32
    k0, k1 = seed & WORD, seed >> 32 & WORD
    for _ in range(10):
        # Products wrap at 64 bits, which leaves both halves right. What is only a factor of an exclusive or keeps
        # whatever lies above its 32 bits: the next mask removes it.
        p, q = a.mul_(0xD2511F53), c.mul_(0xCD9E8D57)
        a, c = (q >> 32).bitwise_xor_(b).bitwise_xor_(k0).bitwise_and_(WORD), (p >> 32).bitwise_xor_(d)
        c.bitwise_xor_(k1).bitwise_and_(WORD)
        b, d = q, p
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return a, b & WORD, c, d & WORD


def box_muller(radius: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """Two independent standard normals from two 32-bit words.

    z = √(−2 log u) · (cos, sin)(2πv). Box & Muller (1958), A note on the generation of random normal deviates.
    """
    length = (radius >> 1).float().add_(0.5).mul_(2.0**-31).log_().mul_(2).abs_().sqrt_()
    turn = (angle - ((angle >> 31) << 32)).float().mul_(math.pi * 2.0**-31)
    return length * turn.cos(), length * turn.sin()


def fill_normals(out: Tensor, seed: int, start: int = 0, sign: float = 1.0) -> None:
    """Numbers start, start + 1, … of the seed's stream of standard normals, times `sign`, into a float32 vector.

    They come in groups of 1,024, four rows of 256: lane l of group g is at counter 256 g + l, whose words 0 and 1 make
    the numbers in rows 0 and 1, words 2 and 3 those in rows 2 and 3. So vector units of any width write in order.
    """
    compiled = kernel("doxa_normals", out)
    if compiled is not None:
        compiled(seed, start, out.numel(), sign, at(out))
        written(out)
        return
    stop = start + out.numel()
    for first in range(start // GROUP, -(-stop // GROUP), 64):  # as much as a cache holds
        low, high = max(first * GROUP, start), min((first + 64) * GROUP, stop)
        groups = -(-high // GROUP) - first
        counter = torch.arange(first * LANES, (first + groups) * LANES, device=out.device)
        a, b, c, d = words(seed, counter)
        rows = torch.stack([z.view(groups, LANES) for z in (*box_muller(a, b), *box_muller(c, d))], 1)
        torch.mul(rows.view(-1)[low - first * GROUP : high - first * GROUP], sign, out=out[low - start : high - start])
