"""From a table to what a net can take: numbers of about unit size, one column a category."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput, BrokenFile, shown
from doxa.tables.forms import NUMBER
from doxa.tables.reread import in_form
from doxa.tables.table import Numbers, Table, Words, as_words, assumptions

LEVELS = 50  # at most, each a column of its own; the rest share one
LARGEST = 1e100  # of a number to learn from: the squares of larger ones are none
FAR = 1e6  # standard deviations; far away every net is a straight line, not worth following

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Scaled:
    """A column of numbers: the median where one is missing, then centred and scaled; another column says which were."""

    kind: ClassVar[str] = "scaled"
    name: str
    median: float
    mean: float
    scale: float
    indicated: bool
    form: str = NUMBER

    @classmethod
    def learned(cls, name: str, column: Numbers) -> Scaled:
        """What scikit-learn's SimpleImputer and StandardScaler learn from the column."""
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import StandardScaler

        values = column.values[:, None]
        imputer = SimpleImputer(strategy="median").fit(values)
        scaler = StandardScaler().fit(imputer.transform(values))
        numbers = float(imputer.statistics_[0]), float(scaler.mean_[0]), float(scaler.scale_[0])
        return cls(name, *numbers, indicated=bool(column.missing.any()), form=column.form)

    @property
    def width(self) -> int:
        return 2 if self.indicated else 1

    def apply(self, column: Numbers, out: Matrix) -> NDArray[np.bool_]:
        """Fill out [N, width]; says which rows have a value of a kind never seen: one missing where none was."""
        missing = column.missing
        with np.errstate(over="ignore"):
            scaled = (np.where(missing, self.median, column.values) - self.mean) / self.scale
        out[:, 0] = np.clip(scaled, -FAR, FAR)
        if self.indicated:
            out[:, 1] = missing
            return np.zeros(len(column), bool)
        return missing


@dataclass(frozen=True)
class OneHot:
    """A column of words: a column for each frequent level, one for rare and new ones where there were any."""

    kind: ClassVar[str] = "one_hot"
    name: str
    levels: tuple[str, ...]
    rare: tuple[str, ...]
    gaps: bool  # whether training had missing cells: they count as a level

    @classmethod
    def learned(cls, name: str, column: Words) -> OneHot:
        """The levels that scikit-learn's OneHotEncoder keeps of at most LEVELS, by their number."""
        from sklearn.preprocessing import OneHotEncoder

        present = column.codes[~column.missing][:, None]
        encoder = OneHotEncoder(max_categories=LEVELS, handle_unknown="infrequent_if_exist").fit(present)
        few = encoder.infrequent_categories_[0]
        rare = set() if few is None else {int(c) for c in few}
        used = [int(c) for c in encoder.categories_[0]]
        kept, few_named = (tuple(column.levels[c] for c in used if (c in rare) is side) for side in (False, True))
        return cls(name, kept, few_named, gaps=bool(column.missing.any()))

    @property
    def width(self) -> int:
        return len(self.levels) + bool(self.rare) + self.gaps

    def apply(self, column: Words, out: Matrix) -> NDArray[np.bool_]:
        """Fill out [N, width]; says which rows have a level, or a gap, that training did not have."""
        place = {level: i for i, level in enumerate(self.levels)}
        place |= dict.fromkeys(self.rare, len(self.levels))
        unseen = len(self.levels) if self.rare else -1
        gap = self.width - 1 if self.gaps else -1
        new = np.array([level not in place for level in column.levels] + [not self.gaps])
        places = np.array([place.get(level, unseen) for level in column.levels] + [gap])[column.codes]
        out[:] = 0
        rows = np.flatnonzero(places >= 0)
        out[rows, places[rows]] = 1
        return new[column.codes]


Step = Scaled | OneHot


@dataclass(frozen=True)
class Preparation:
    """How every column of a table becomes columns of a matrix x [N, D], learned once and kept with the belief."""

    steps: tuple[Step, ...]
    dropped: dict[str, str]  # columns not used, and why

    @classmethod
    def learned(cls, table: Table) -> Preparation:
        """From the columns that a net is to learn from."""
        require_range(table)
        steps: list[Step] = []
        dropped = {}
        for name, column in table.columns.items():
            if column.missing.all():
                dropped[name] = "every cell is missing"
            elif isinstance(column, Words) and column.distinct > max(LEVELS, len(table) // 2):
                dropped[name] = f"{column.distinct:,} different words in {len(table):,} rows"
            elif isinstance(column, Numbers):
                steps.append(Scaled.learned(name, column))
            else:
                steps.append(OneHot.learned(name, column))
        if not steps:
            raise BadInput(f"{table.name} has no column to learn from besides the target")
        return cls(tuple(steps), dropped)

    @property
    def width(self) -> int:
        return sum(step.width for step in self.steps)

    @property
    def names(self) -> list[str]:
        """The columns that are used, as the table names them."""
        return [step.name for step in self.steps]

    def apply(self, table: Table) -> tuple[Matrix, dict[str, NDArray[np.bool_]]]:
        """The matrix x [N, D], and for each column the rows [N] whose value is of a kind that training never had."""
        x = np.empty((len(table), self.width), np.float32)
        new = {}
        start = 0
        for step in self.steps:
            if step.name not in table.columns:
                raise BadInput(
                    f"{table.name} lacks the column {shown(step.name)!r}, which this belief was learned with; "
                    f"it needs: {', '.join(shown(n, 30) for n in self.names)}"
                )
            x_part = x[:, start : start + step.width]
            if isinstance(step, Scaled):
                odd = step.apply(in_form(table, step.name, step.form), x_part)
            else:
                odd = step.apply(as_words(table.columns[step.name]), x_part)
            if odd.any():
                new[step.name] = odd
            start += step.width
        return x, new

    def assumed(self, table: Table) -> tuple[str, ...]:
        """What is assumed of how a new table's numbers are written that training did not show."""
        plain = {step.name for step in self.steps if isinstance(step, Scaled) and step.form == NUMBER}
        forms = {k: c.form for k, c in table.columns.items() if k in plain and isinstance(c, Numbers)}
        return (*table.remarks, *assumptions(forms))

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"steps": [{"kind": s.kind, **asdict(s)} for s in self.steps], "dropped": self.dropped}

    @classmethod
    def of(cls, state: dict[str, Any]) -> Preparation:
        """The way back from `state`."""
        kinds: dict[str, Callable[..., Step]] = {"scaled": Scaled, "one_hot": OneHot}
        try:
            steps = []
            for step in state["steps"]:
                rest = {k: tuple(v) if isinstance(v, list) else v for k, v in step.items() if k != "kind"}
                steps.append(kinds[step["kind"]](**rest))
            return cls(tuple(steps), dict(state["dropped"]))
        except (KeyError, TypeError) as error:
            raise BrokenFile(f"a preparation that Doxa never writes: {error!r}") from None


def require_range(table: Table) -> None:
    """Refuse numbers that nothing can be learned from: infinite ones, and those whose squares would be."""
    for name, column in table.columns.items():
        if not isinstance(column, Numbers):
            continue
        beyond = np.flatnonzero(np.abs(column.values) > LARGEST)
        if len(beyond):
            row, value = int(beyond[0]) + 1, float(column.values[beyond[0]])
            what = "is infinite" if np.isinf(value) else f"is {value:.3g}"
            raise BadInput(
                f"column {shown(name)!r} {what} in row {row}, beyond ±{LARGEST:g}; leave such a cell empty, or the "
                f"column out with --drop"
            )
