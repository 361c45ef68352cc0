"""Scales, and weights drawn with them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.flat.rows import column_chunks, empty_rows, same_stride, triton_grid
from doxa.kernels import cuda, kernel, mark_written, pointer, stride
from doxa.random.philox import Stream, fill_normals

# No posterior of use has a |rho| this large: its scale would be 80, or 1e-35.
RHO_LIMIT = 80.0


@dataclass(frozen=True)
class RegenerableNoise:
    """Where the ε of a draw came from: what it takes to make it again instead of keeping it."""

    stream: Stream
    start: int = 0
    sign: float = 1.0

    def columns(self, span: slice) -> RegenerableNoise:
        """That of some columns."""
        return RegenerableNoise(self.stream, self.start + span.start, self.sign)

    def regenerate(self, like: Tensor) -> Tensor:
        """ε itself, as rows like those given."""
        epsilon = empty_rows(like)
        fill_normals(epsilon, self.stream, self.start, self.sign)
        return epsilon

    def arguments(self) -> tuple[int | float | Tensor | None, ...]:
        """As the C kernels take them."""
        return pointer(self.stream.seeds), self.stream.high, self.start, self.sign


# What the C kernels are told where ε is given, or not needed.
NO_NOISE_ARGUMENTS = None, 0, 0, 1.0


def can_regenerate_noise(like: Tensor) -> bool:
    """Whether the step of such rows can make ε again on its way, so that none need be kept."""
    return kernel("doxa_descend", like) is not None


def fill_scale(scale: Tensor, rho: Tensor, squared: bool = False) -> Tensor:
    """scale = softplus(rho), or its square; rho is held within ±FAR, so that 1/scale is finite too."""
    on_gpu = cuda.kernel("fill_scale", scale, rho)
    if on_gpu is not None:
        on_gpu[triton_grid(rho)](rho.shape[1], stride(rho), stride(scale), rho, scale, squared, cuda.WIDE)
        return scale
    compiled = kernel("doxa_fill_scale", scale, rho)
    if compiled is None:
        torch.clamp(rho, -RHO_LIMIT, RHO_LIMIT, out=scale).exp_().log1p_()
        return scale.square_() if squared else scale
    compiled(*rho.shape, squared, stride(rho), stride(scale), pointer(rho), pointer(scale))
    mark_written(scale)
    return scale


def draw(
    w: Tensor,
    mean: Tensor | None,
    scale: Tensor | None,
    epsilon: Tensor | None,
    rho: Tensor | None,
    stream: Stream,
    start: int = 0,
    sign: float = 1.0,
) -> None:
    """epsilon = sign · normals, w = mean + scale · epsilon, with scale = softplus(rho) first where rho is given.

    Without a mean it is 0. Scale and epsilon are kept where there is room for them; without rho the scale is read.
    """
    vectors = w, mean, scale, epsilon, rho
    same_strides = same_stride(scale, epsilon, rho)
    on_gpu = cuda.kernel("draw", *vectors) if same_strides else None
    if on_gpu is not None:
        is_given = [v is not None for v in (mean, rho, scale, epsilon)]
        tensors = [w if v is None else v for v in (mean, rho, scale, epsilon)]
        strides = stride(mean), stride(rho if rho is not None else scale), stride(w)
        programs = cuda.group_count(start, w.shape[1]), len(w)
        stream_numbers = stream.seeds, cuda.step_tensor(stream.step, w.device), stream.number, start, w.shape[1], sign
        on_gpu[programs](*stream_numbers, *strides, *tensors, w, *is_given)
        return
    compiled = kernel("doxa_draw", *vectors) if same_strides and not isinstance(stream.step, Tensor) else None
    if compiled is not None:
        strides = stride(mean), stride(rho if rho is not None else scale), stride(w)
        numbers = len(w), pointer(stream.seeds), stream.high, start, w.shape[1], sign
        compiled(*numbers, *strides, pointer(mean), pointer(rho), pointer(scale), pointer(epsilon), pointer(w))
        mark_written(*(v for v in (w, epsilon, scale if rho is not None else None) if v is not None))
        return
    # The numbers are made where they will lie: in epsilon if it is kept, else in w itself.
    noise = w if epsilon is None else epsilon
    fill_normals(noise, stream, start, sign)
    for span in column_chunks(w.shape[1], w.device):
        if rho is not None:
            chunk_scale = fill_scale(empty_rows(rho[:, span]) if scale is None else scale[:, span], rho[:, span])
        else:
            assert scale is not None
            chunk_scale = scale[:, span]
        torch.mul(chunk_scale, noise[:, span], out=w[:, span])
        if mean is not None:
            w[:, span] += mean[:, span]
