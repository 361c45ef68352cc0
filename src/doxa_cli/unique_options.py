"""Commands whose options are given once: of two values none is dropped without a word."""

from __future__ import annotations

from collections import Counter
from typing import Any

from doxa_cli.outcome import UsageError
from doxa_cli.plain_flags import PlainFlagsCommand

# What to do instead, for some.
HINTS = {"target": "one net learns one column: give one, and leave the others out by --drop, or make a run for each"}


class UniqueOptionsCommand(PlainFlagsCommand):
    """A command that refuses a second value for an option that takes one, instead of keeping the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        counts = Counter(p for p in order if p.param_type_name == "option" and not (p.multiple or p.is_flag))
        for option, times in counts.items():
            if times > 1 and not ctx.resilient_parsing:
                name = max(option.opts, key=len)
                times_text = "twice" if times == 2 else f"{times} times"
                raise UsageError(f"{name} is given {times_text}; {HINTS.get(option.name, 'give it once')}", ctx=ctx)
        return super().parse_args(ctx, args)
