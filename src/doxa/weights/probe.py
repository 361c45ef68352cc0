"""How a net really uses each of its weights, found by running it once and watching."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from doxa.data.rows import Inputs, explain_input_errors, first_rows
from doxa.errors import BadInput
from doxa.random.keys import isolated_rng
from doxa.weights.layout import Layout, autocast_context, call, learning_mode

# The operations whose noise can be moved from the weights to the rows.
OPERATIONS: tuple[Callable[..., Tensor], ...] = (
    F.linear,
    F.conv1d,
    F.conv2d,
    F.conv3d,
    F.conv_transpose1d,
    F.conv_transpose2d,
    F.conv_transpose3d,
)


def without_override_check(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same torch function without its first question, whether someone overrides it: its inside becomes visible."""
    assert isinstance(function, types.FunctionType)
    override_checks = {k: _never_overridden for k in function.__globals__ if k.startswith("has_torch_function")}
    copy = types.FunctionType(
        function.__code__,
        {**function.__globals__, **override_checks},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _never_overridden(*_: Any) -> bool:
    return False


# The arguments of F.embedding in their order.
EMBEDDING = ("input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")

# torch's attention is one Python function that hides the linear maps inside it.
ATTENTION = F.multi_head_attention_forward
OPEN_ATTENTION = without_override_check(ATTENTION)


@dataclass(frozen=True)
class Use:
    """The one place where a net uses a weight."""

    operation: str
    call: int  # which of the pass's linear maps and convolutions, from 0
    role: str  # "weight" or "bias"
    channel_axis: int  # of the operation's input
    row_axes: tuple[int, ...]  # axes of the operation's input that grow with the number of rows
    groups: int
    transposed: bool
    first: bool  # whether no linear map or convolution, and no other random weight, came before


@dataclass(frozen=True)
class Uses:
    """For each random weight: its one use by a linear map or convolution, or why it has none."""

    single_use: Mapping[str, Use]
    fallback_reasons: Mapping[str, str]
    draws_random_numbers: bool = False  # whether the net draws random numbers of its own, as nn.Dropout does
    supports_vmap: bool = True  # whether many nets run as one program, and gain by it

    def operations(self) -> dict[int, dict[str, str]]:
        """The calls in order, each with the names of its random weight and bias."""
        by_call: dict[int, dict[str, str]] = {}
        for name, use in sorted(self.single_use.items(), key=lambda item: item[1].call):
            by_call.setdefault(use.call, {})[use.role] = name
        return by_call


def arguments(
    args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Tensor, Tensor, Tensor | None, tuple[Any, ...], dict[str, Any]]:
    """Input, weight, bias and the rest of a call to one of OPERATIONS, however it was spelled."""
    names = ("input", "weight", "bias")
    head = [*args[:3], *(kwargs.get(n) for n in names[len(args[:3]) :])]
    rest = {k: v for k, v in kwargs.items() if k not in names}
    return head[0], head[1], head[2], tuple(args[3:]), rest


class _UseRecorder(TorchFunctionMode):
    """Notes every function that is handed one of the leaves and returns a tensor."""

    def __init__(self, leaves: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.names = {id(leaf): name for name, leaf in leaves.items()}
        self.functions_by_weight: dict[str, list[str]] = {name: [] for name in leaves}
        self.uses: dict[str, Use] = {}
        self.shapes: list[tuple[int, ...]] = []
        self.operations = 0
        self.padded_embedding = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is ATTENTION:
            with self:
                return OPEN_ATTENTION(*args, **kwargs)
        result = func(*args, **kwargs)
        if not any(isinstance(leaf, Tensor) for leaf in tree_leaves(result)):
            return result
        # Of many embeddings at once, torch would keep the padding of the first alone, and has no sparse gradients.
        if func is F.embedding:
            named = dict(zip(EMBEDDING, args, strict=False)) | kwargs
            self.padded_embedding |= named.get("padding_idx") is not None or bool(named.get("sparse"))
        touched = {self.names[id(a)] for a in tree_leaves((args, kwargs)) if id(a) in self.names}
        first = self.operations == 0 and not any(self.functions_by_weight.values())
        for name in touched:
            self.functions_by_weight[name].append(getattr(func, "__name__", str(func)).strip("_"))
        if func in OPERATIONS:
            if touched:
                self._record_use(func, args, kwargs, first)
            self.operations += 1
        return result

    def _record_use(self, func: Any, args: Any, kwargs: Any, first: bool) -> None:
        x, weight, bias, rest, named = arguments(args, kwargs)
        # Every convolution's seventh argument is its groups.
        groups = 1 if func is F.linear else rest[3] if len(rest) > 3 else named.get("groups", 1)
        axis = x.dim() - 1 if func is F.linear else x.dim() - weight.dim() + 1
        for role, tensor in (("weight", weight), ("bias", bias)):
            if id(tensor) in self.names:
                transposed = "transpose" in func.__name__
                use = Use(func.__name__, len(self.shapes), role, axis, (), groups, transposed, first)
                self.uses[self.names[id(tensor)]] = use
        self.shapes.append(tuple(x.shape))


def generator_state(device: torch.device) -> Tensor:
    """Where the generator stands that the net's own random numbers come from."""
    generator = torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else torch.default_generator
    return generator.get_state()


def _refuse_recomputation(output: Tensor) -> None:
    """A net that runs again while gradients flow would find its own weights there, not those it was called with."""
    recomputed: list[nn.Module] = []
    hook = nn.modules.module.register_module_forward_pre_hook(lambda module, args: recomputed.append(module))
    try:
        if output.requires_grad:
            output.sum().backward()
    except RuntimeError:
        if not recomputed:
            raise
    finally:
        hook.remove()
    if recomputed:
        raise BadInput(
            f"the net computes {type(recomputed[0]).__name__} again in the backward pass (torch.utils.checkpoint), "
            "where its weights are no longer those of the belief; turn activation checkpointing off"
        )


def probe(
    net: nn.Module, layout: Layout, start: Tensor, buffers: Mapping[str, Tensor], x: Inputs
) -> tuple[Uses, Tensor]:
    """Sort a net's random weights by use, from two passes over a few rows; also an example of its output.

    A weight used exactly once, by a linear map or a convolution whose input holds the rows, can be given noise for each
    row. Two passes with different numbers of rows show which axes the rows are in.
    """
    recorders: list[_UseRecorder] = []
    outputs: list[Tensor] = []
    for rows in (2, 3):
        leaves = {k: v.detach().requires_grad_() for k, v in layout.weights(start).items()}
        recorder = _UseRecorder(leaves)
        copies = {k: b.clone() for k, b in buffers.items()}
        with isolated_rng(start.device), learning_mode(net), explain_input_errors(x), recorder:
            before = generator_state(start.device)
            output = call(net, leaves, copies, first_rows(x, rows))
            draws_random_numbers = not torch.equal(before, generator_state(start.device))
        if not outputs:
            _refuse_recomputation(output)
        output = output.detach().to(start.dtype)
        if output.dim() == 0 or output.shape[0] != rows:
            raise BadInput(
                f"the net turned {rows} rows into an output of shape {tuple(output.shape)}; "
                "the first axis must be the rows"
            )
        outputs.append(output)
        recorders.append(recorder)
    first, second = recorders
    if first.functions_by_weight != second.functions_by_weight:
        changed = [
            k for k in first.functions_by_weight if first.functions_by_weight[k] != second.functions_by_weight[k]
        ]
        raise BadInput(f"the net uses {changed} differently from pass to pass; Doxa needs one fixed flow of weights")
    single_use: dict[str, Use] = {}
    fallback_reasons: dict[str, str] = {}
    for slot in layout.random_slots:
        functions = first.functions_by_weight[slot.name]
        use = first.uses.get(slot.name)
        if not functions:
            fallback_reasons[slot.name] = "never used"
        elif use is None or len(functions) > 1:
            fallback_reasons[slot.name] = "used by " + " and ".join(functions)
        else:
            axes = tuple(
                i
                for i, (a, b) in enumerate(zip(first.shapes[use.call], second.shapes[use.call], strict=True))
                if a != b
            )
            if axes and use.channel_axis not in axes:
                single_use[slot.name] = replace(use, row_axes=axes)
            else:
                fallback_reasons[slot.name] = f"used by {use.operation} on an input without rows"
    # Each convolution of a fleet is one of its own to the library that computes it; recurrent nets have no rule at all.
    slow_under_vmap = any(
        "conv" in f or f in ("lstm", "gru", "rnn_tanh", "rnn_relu")
        for f in set().union(*first.functions_by_weight.values())
    )
    return Uses(
        single_use,
        fallback_reasons,
        draws_random_numbers,
        not (slow_under_vmap or draws_random_numbers or first.padded_embedding),
    ), outputs[0]


def supports_vmap(
    net: nn.Module,
    layout: Layout,
    start: Tensor,
    buffers: Mapping[str, Tensor],
    x: Inputs,
    autocast: torch.dtype | None = None,
) -> bool:
    """Whether two nets run as one program there and back, and find what each would alone; by trying it on three rows.

    Branches on numbers, tensors filled in place or operations without a rule for many nets keep a net from it.
    """
    full_precision = autocast is None and start.dtype in (torch.float32, torch.float64)
    # Some processors say that they have bfloat16, and end the process at the first product of many matrices in it.
    if start.device.type == "cpu" and not full_precision:
        return False
    rows, nets = first_rows(x, 3), torch.stack([start, 1.5 * start])

    def forward(weights: Mapping[str, Tensor], net_buffers: Mapping[str, Tensor]) -> Tensor:
        with autocast_context(start.device, autocast):
            return call(net, weights, net_buffers, rows)

    def forward_and_backward(
        program: Callable[..., Tensor], flat: Tensor, net_buffers: Mapping[str, Tensor]
    ) -> list[Tensor]:
        leaves = {k: v.detach().requires_grad_() for k, v in layout.weights(flat).items()}
        output = program(leaves, {k: b.clone() for k, b in net_buffers.items()})
        gradients = torch.autograd.grad(output.float().square().sum(), list(leaves.values()), allow_unused=True)
        outputs_and_gradients = [
            output,
            *(torch.zeros_like(v) if g is None else g for g, v in zip(gradients, leaves.values(), strict=True)),
        ]
        return [f.detach().to_dense().float() for f in outputs_and_gradients]

    tolerance = 0.02 if full_precision else 0.1
    with (
        isolated_rng(start.device),
        learning_mode(net),
        torch.enable_grad(),
        _full_precision_matmul(),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("error", message=".*performance drop.*")  # torch's word for one after the other
        try:
            one_by_one = [forward_and_backward(forward, flat, buffers) for flat in nets]
            vectorized = forward_and_backward(
                torch.vmap(forward), nets, {k: torch.stack([b, b]) for k, b in buffers.items()}
            )
        except (RuntimeError, ValueError, TypeError, NotImplementedError, UserWarning):
            return False
    pairs = (
        (batched, torch.stack(separate))
        for batched, separate in zip(vectorized, zip(*one_by_one, strict=True), strict=True)
    )
    return all(batched.shape == stacked.shape and _close(batched, stacked, tolerance) for batched, stacked in pairs)


def _close(a: Tensor, b: Tensor, tolerance: float) -> bool:
    """Whether two tensors differ by little of their length: a unit that rounding switches off is not another net."""
    return bool((a - b).norm() <= tolerance * b.norm() + 1e-6)


@contextmanager
def _full_precision_matmul() -> Iterator[None]:
    """Products of matrices in full single precision, whatever the process has asked for."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
