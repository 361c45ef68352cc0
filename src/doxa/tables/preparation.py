"""From a table to what a net can take: numbers of about unit size, one column a category."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput, BrokenFile, shorten
from doxa.tables.forms import NUMBER
from doxa.tables.reread import column_in_form
from doxa.tables.table import Numbers, Table, Words, as_words, form_notes

MAX_LEVELS = 50  # at most, each a column of its own; the rest share one
MAX_NUMBER = 1e100  # of a number to learn from: the squares of larger ones are none
MAX_DEVIATIONS = 1e6  # standard deviations; far away every net is a straight line, not worth following

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
    def fit(cls, name: str, column: Numbers) -> Scaled:
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
        out[:, 0] = np.clip(scaled, -MAX_DEVIATIONS, MAX_DEVIATIONS)
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
    def fit(cls, name: str, column: Words) -> OneHot:
        """The levels that scikit-learn's OneHotEncoder keeps of at most LEVELS, by their number."""
        from sklearn.preprocessing import OneHotEncoder

        present = column.codes[~column.missing][:, None]
        encoder = OneHotEncoder(max_categories=MAX_LEVELS, handle_unknown="infrequent_if_exist").fit(present)
        infrequent = encoder.infrequent_categories_[0]
        rare = set() if infrequent is None else {int(c) for c in infrequent}
        used = [int(c) for c in encoder.categories_[0]]
        frequent_levels, rare_levels = (
            tuple(column.levels[c] for c in used if (c in rare) is side) for side in (False, True)
        )
        return cls(name, frequent_levels, rare_levels, gaps=bool(column.missing.any()))

    @property
    def width(self) -> int:
        return len(self.levels) + bool(self.rare) + self.gaps

    def apply(self, column: Words, out: Matrix) -> NDArray[np.bool_]:
        """Fill out [N, width]; says which rows have a level, or a gap, that training did not have."""
        column_of_level = {level: i for i, level in enumerate(self.levels)}
        column_of_level |= dict.fromkeys(self.rare, len(self.levels))
        rare_column = len(self.levels) if self.rare else -1
        gap_column = self.width - 1 if self.gaps else -1
        is_new = np.array([level not in column_of_level for level in column.levels] + [not self.gaps])
        columns = np.array([column_of_level.get(level, rare_column) for level in column.levels] + [gap_column])[
            column.codes
        ]
        out[:] = 0
        rows = np.flatnonzero(columns >= 0)
        out[rows, columns[rows]] = 1
        return is_new[column.codes]


Step = Scaled | OneHot


@dataclass(frozen=True)
class Preparation:
    """How every column of a table becomes columns of a matrix x [N, D], learned once and kept with the belief."""

    steps: tuple[Step, ...]
    dropped: dict[str, str]  # columns not used, and why

    @classmethod
    def fit(cls, table: Table) -> Preparation:
        """From the columns that a net is to learn from."""
        require_range(table)
        steps: list[Step] = []
        dropped = {}
        for name, column in table.columns.items():
            if column.missing.all():
                dropped[name] = "every cell is missing"
            elif isinstance(column, Words) and column.distinct > max(MAX_LEVELS, len(table) // 2):
                dropped[name] = f"{column.distinct:,} different words in {len(table):,} rows"
            elif isinstance(column, Numbers):
                steps.append(Scaled.fit(name, column))
            else:
                steps.append(OneHot.fit(name, column))
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
        new_values = {}
        start = 0
        for step in self.steps:
            if step.name not in table.columns:
                raise BadInput(
                    f"{table.name} lacks the column {shorten(step.name)!r}, which this belief was learned with; "
                    f"it needs: {', '.join(shorten(n, 30) for n in self.names)}"
                )
            x_part = x[:, start : start + step.width]
            if isinstance(step, Scaled):
                new_rows = step.apply(column_in_form(table, step.name, step.form), x_part)
            else:
                new_rows = step.apply(as_words(table.columns[step.name]), x_part)
            if new_rows.any():
                new_values[step.name] = new_rows
            start += step.width
        return x, new_values

    def assumption_notes(self, table: Table) -> tuple[str, ...]:
        """What is assumed of how a new table's numbers are written that training did not show."""
        plain_names = {step.name for step in self.steps if isinstance(step, Scaled) and step.form == NUMBER}
        forms = {k: c.form for k, c in table.columns.items() if k in plain_names and isinstance(c, Numbers)}
        return (*table.remarks, *form_notes(forms))

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"steps": [{"kind": s.kind, **asdict(s)} for s in self.steps], "dropped": self.dropped}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Preparation:
        """The way back from `state`."""
        kinds: dict[str, Callable[..., Step]] = {"scaled": Scaled, "one_hot": OneHot}
        try:
            steps = []
            for step in state["steps"]:
                fields = {k: tuple(v) if isinstance(v, list) else v for k, v in step.items() if k != "kind"}
                steps.append(kinds[step["kind"]](**fields))
            return cls(tuple(steps), dict(state["dropped"]))
        except (KeyError, TypeError) as error:
            raise BrokenFile(f"a preparation that Doxa never writes: {error!r}") from None


def require_range(table: Table) -> None:
    """Refuse numbers that nothing can be learned from: infinite ones, and those whose squares would be."""
    for name, column in table.columns.items():
        if not isinstance(column, Numbers):
            continue
        beyond = np.flatnonzero(np.abs(column.values) > MAX_NUMBER)
        if len(beyond):
            row, value = int(beyond[0]) + 1, float(column.values[beyond[0]])
            problem = "is infinite" if np.isinf(value) else f"is {value:.3g}"
            raise BadInput(
                f"column {shorten(name)!r} {problem} in row {row}, beyond ±{MAX_NUMBER:g}; leave such a cell empty, or "
                f"the column out with --drop"
            )
