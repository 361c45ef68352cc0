"""Where episodes are played: many copies of an environment, stepped together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput, nearest
from doxa.search.episodes.actions import width

Array = NDArray[Any]
# A name that gymnasium knows, or a function that makes a new environment.
Environment = str | Callable[[], Any]


class Stage(Protocol):
    """Copies of an environment, by number."""

    def reset(self, seeds: Sequence[int]) -> Array:
        """Begin as many episodes as there are seeds; their first observations [n, *observation]."""
        ...

    def step(self, rows: Array, actions: Array) -> tuple[Array, Array, Array]:
        """Go on with some of them: observations, rewards, and which are over, each [rows, ...]."""
        ...


class Scenery:
    """One environment's spaces, how long its episodes are, and how copies of it are made."""

    def __init__(self, environment: Environment, longest: int | None = None) -> None:
        self.environment = environment
        self.first = _made(environment)
        self.actions = self.first.action_space
        self.outputs = width(self.actions)
        self.shape = _shape(self.first.observation_space)
        spec = getattr(self.first, "spec", None)
        own = None if spec is None else spec.max_episode_steps
        if longest is None and own is None:
            raise BadInput("the environment sets no end to an episode; say longest=, the steps after which it is over")
        self.longest: int = min(end for end in (longest, own) if end is not None)
        self.threshold = None if spec is None else spec.reward_threshold
        self.name = environment if isinstance(environment, str) else "a function" if spec is None else str(spec.id)
        self.apart = Apart(self)  # copies each seeded by itself
        self._together: dict[int, Together] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy for a worker, which makes environments of its own."""
        return Scenery, (self.environment, self.longest)

    def together(self, many: int) -> Stage | None:
        """Copies that the environment itself steps as one, if it can; they share a seed."""
        import gymnasium

        if not isinstance(self.environment, str) or gymnasium.spec(self.environment).vector_entry_point is None:
            return None
        if many not in self._together:
            made = gymnasium.make_vec(self.environment, many, vectorization_mode="vector_entry_point")
            self._together[many] = Together(made)
        return self._together[many]

    def plain(self, observations: Array) -> Array:
        """Observations as numbers [n, *observation]; states that are counted become rows of zeros with a one."""
        if len(self.shape) == 1 and observations.ndim == 1:
            return np.eye(self.shape[0])[observations - self.first.observation_space.start]
        if observations.shape[1:] != self.shape:
            raise BadInput(
                f"{self.name} showed an observation of shape {observations.shape[1:]}; its observation_space says "
                f"{self.shape}"
            )
        return observations.astype(np.float64)


class Apart:
    """A list of environments, each with an episode of its own; they are made once, and begun again."""

    def __init__(self, scenery: Scenery) -> None:
        self.scenery = scenery
        self.all = [scenery.first]

    def reset(self, seeds: Sequence[int]) -> Array:
        while len(self.all) < len(seeds):
            self.all.append(_made(self.scenery.environment))
        return self._stacked([one.reset(seed=seed)[0] for one, seed in zip(self.all, seeds, strict=False)])

    def step(self, rows: Array, actions: Array) -> tuple[Array, Array, Array]:
        told = actions.tolist() if actions.ndim == 1 else actions
        came = [self.all[k].step(action) for k, action in zip(rows.tolist(), told, strict=True)]
        over = np.array([ended or cut for _, _, ended, cut, _ in came])
        return self._stacked([c[0] for c in came]), np.array([c[1] for c in came], dtype=np.float64), over

    def _stacked(self, observations: list[Any]) -> Array:
        try:
            return np.stack(observations)
        except ValueError:
            shapes = sorted({np.shape(one) for one in observations})
            raise BadInput(
                f"{self.scenery.name} showed observations of shapes {shapes}; its observation_space says "
                f"{self.scenery.shape}"
            ) from None


class Together:
    """An environment that steps many episodes as one program; those that are over go on unheeded."""

    def __init__(self, vector: Any) -> None:
        self.vector = vector

    def reset(self, seeds: Sequence[int]) -> Array:
        found = self.vector.reset(seed=seeds[0])[0]
        self.actions: Array = np.stack([self.vector.single_action_space.sample()] * len(seeds))
        return np.array(found)

    def step(self, rows: Array, actions: Array) -> tuple[Array, Array, Array]:
        self.actions[rows] = actions
        observations, rewards, ended, cut, _ = self.vector.step(self.actions)
        return np.array(observations[rows]), rewards[rows].astype(np.float64), (ended | cut)[rows]


def _made(environment: Environment) -> Any:
    try:
        import gymnasium
    except ImportError as error:
        raise BadInput('episodes are played in gymnasium; install it with: pip install "doxa[rl]"') from error
    if not isinstance(environment, str):
        made = environment()
        if not isinstance(made, gymnasium.Env):
            raise BadInput(
                f"environment must be a name or a function that makes a gymnasium.Env; it made a {type(made).__name__}"
            )
        return made
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="gymnasium|pygame")
            return gymnasium.make(environment, disable_env_checker=True)
    except gymnasium.error.DependencyNotInstalled as error:
        raise BadInput(f'{environment} needs more than gymnasium itself: pip install "doxa[rl]"') from error
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        known = nearest(environment, gymnasium.registry)
        raise BadInput(f"gymnasium has no environment {environment!r}{known}") from error


def _shape(space: Any) -> tuple[int, ...]:
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        return tuple(space.shape)
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    raise BadInput(
        f"the environment shows {space}; a net can be given Box observations, or Discrete ones as zeros and a one: "
        "wrap it in gymnasium.wrappers.FlattenObservation"
    )
