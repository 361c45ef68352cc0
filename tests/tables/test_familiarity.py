"""Rows unlike the training's: about one ordinary row in a thousand, one far column however many there are."""

from __future__ import annotations

import numpy as np
import pytest

from doxa.tables import Familiarity


@pytest.mark.parametrize(("rows", "columns"), [(60, 4), (300, 10), (900, 5), (1000, 5), (1200, 300), (5000, 20)])
def test_one_rule_for_few_rows_and_for_many(rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    familiarity = Familiarity.fit(rng.normal(size=(rows, columns)).astype(np.float32))
    ordinary = rng.normal(size=(5000, columns)).astype(np.float32)
    assert familiarity.unlike(ordinary).mean() <= 0.01
    far = rng.normal(size=(1000, columns)).astype(np.float32)
    far[:, columns // 2] = 8
    assert familiarity.unlike(far).mean() >= 0.95


def test_the_limit_does_not_jump_at_a_thousand_rows() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1100, 5)).astype(np.float32)
    limits = [Familiarity.fit(x[:rows]).limit for rows in range(900, 1100, 10)]
    assert max(limits) / min(limits) < 1.1


@pytest.mark.parametrize("heavy", [False, True])
def test_about_one_ordinary_row_in_a_thousand_is_unlike(heavy: bool) -> None:
    rng = np.random.default_rng(2)
    unlike_shares = []
    for _ in range(20):
        x = rng.standard_t(3, size=(12_000, 4)) if heavy else rng.normal(size=(12_000, 4))
        x = x.astype(np.float32)
        unlike_shares.append(Familiarity.fit(x[:4000]).unlike(x[4000:]).mean())
    assert 3e-4 < np.mean(unlike_shares) < 3e-3


def test_a_column_that_never_varied_may_not_begin_to() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=(300, 3)), np.full((300, 1), 2.0)], 1).astype(np.float32)
    familiarity = Familiarity.fit(x)
    assert familiarity.unlike(x).mean() < 0.01
    row = np.zeros((1, 4), np.float32)
    assert familiarity.unlike(row)[0]
    row[0, 3] = 2
    assert not familiarity.unlike(row)[0]


def test_what_was_written_before_there_were_ranges_is_read() -> None:
    x = np.random.default_rng(4).normal(size=(100, 3)).astype(np.float32)
    state = Familiarity.fit(x).state()
    old = Familiarity.from_state({k: v for k, v in state.items() if k not in ("low", "high")})
    assert old.unlike(100 * x).all()
    assert not old.unlike(x).any()
