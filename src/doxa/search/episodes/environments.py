"""Where episodes are played: many copies of an environment, stepped together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput, did_you_mean
from doxa.search.episodes.actions import output_count

Array = NDArray[Any]
# A name that gymnasium knows, or a function that makes a new environment.
Environment = str | Callable[[], Any]


class VectorEnvironment(Protocol):
    """Copies of an environment, by number."""

    def reset(self, seeds: Sequence[int]) -> Array:
        """Begin as many episodes as there are seeds; their first observations [n, *observation]."""
        ...

    def step(self, rows: Array, actions: Array) -> tuple[Array, Array, Array]:
        """Go on with some of them: observations, rewards, and which are over, each [rows, ...]."""
        ...


class EnvironmentSpec:
    """One environment's spaces, how long its episodes are, and how copies of it are made."""

    def __init__(self, environment: Environment, longest: int | None = None) -> None:
        self.environment = environment
        self.first_environment = _make_environment(environment)
        self.action_space = self.first_environment.action_space
        self.output_count = output_count(self.action_space)
        self.observation_shape = _observation_shape(self.first_environment.observation_space)
        spec = getattr(self.first_environment, "spec", None)
        max_episode_steps = None if spec is None else spec.max_episode_steps
        if longest is None and max_episode_steps is None:
            raise BadInput("the environment sets no end to an episode; say longest=, the steps after which it is over")
        self.longest: int = min(end for end in (longest, max_episode_steps) if end is not None)
        self.threshold = None if spec is None else spec.reward_threshold
        self.name = environment if isinstance(environment, str) else "a function" if spec is None else str(spec.id)
        self.sequential = SequentialEnvironments(self)  # copies each seeded by itself
        self._vectorized: dict[int, VectorizedEnvironments] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy for a worker, which makes environments of its own."""
        return EnvironmentSpec, (self.environment, self.longest)

    def vectorized(self, count: int) -> VectorEnvironment | None:
        """Copies that the environment itself steps as one, if it can; they share a seed."""
        import gymnasium

        if not isinstance(self.environment, str) or gymnasium.spec(self.environment).vector_entry_point is None:
            return None
        if count not in self._vectorized:
            vector = gymnasium.make_vec(self.environment, count, vectorization_mode="vector_entry_point")
            self._vectorized[count] = VectorizedEnvironments(vector)
        return self._vectorized[count]

    def encode_observations(self, observations: Array) -> Array:
        """Observations as numbers [n, *observation]; states that are counted become rows of zeros with a one."""
        if len(self.observation_shape) == 1 and observations.ndim == 1:
            return np.eye(self.observation_shape[0])[observations - self.first_environment.observation_space.start]
        if observations.shape[1:] != self.observation_shape:
            raise BadInput(
                f"{self.name} showed an observation of shape {observations.shape[1:]}; its observation_space says "
                f"{self.observation_shape}"
            )
        return observations.astype(np.float64)


class SequentialEnvironments:
    """A list of environments, each with an episode of its own; they are made once, and begun again."""

    def __init__(self, env_spec: EnvironmentSpec) -> None:
        self.env_spec = env_spec
        self.environments = [env_spec.first_environment]

    def reset(self, seeds: Sequence[int]) -> Array:
        while len(self.environments) < len(seeds):
            self.environments.append(_make_environment(self.env_spec.environment))
        return self._stack([env.reset(seed=seed)[0] for env, seed in zip(self.environments, seeds, strict=False)])

    def step(self, rows: Array, actions: Array) -> tuple[Array, Array, Array]:
        action_list = actions.tolist() if actions.ndim == 1 else actions
        transitions = [self.environments[k].step(action) for k, action in zip(rows.tolist(), action_list, strict=True)]
        over = np.array([terminated or truncated for _, _, terminated, truncated, _ in transitions])
        return (
            self._stack([transition[0] for transition in transitions]),
            np.array([transition[1] for transition in transitions], dtype=np.float64),
            over,
        )

    def _stack(self, observations: list[Any]) -> Array:
        try:
            return np.stack(observations)
        except ValueError:
            shapes = sorted({np.shape(observation) for observation in observations})
            raise BadInput(
                f"{self.env_spec.name} showed observations of shapes {shapes}; its observation_space says "
                f"{self.env_spec.observation_shape}"
            ) from None


class VectorizedEnvironments:
    """An environment that steps many episodes as one program; those that are over go on unheeded."""

    def __init__(self, vector: Any) -> None:
        self.vector = vector

    def reset(self, seeds: Sequence[int]) -> Array:
        observations = self.vector.reset(seed=seeds[0])[0]
        self.actions: Array = np.stack([self.vector.single_action_space.sample()] * len(seeds))
        return np.array(observations)

    def step(self, rows: Array, actions: Array) -> tuple[Array, Array, Array]:
        self.actions[rows] = actions
        observations, rewards, terminated, truncated, _ = self.vector.step(self.actions)
        return np.array(observations[rows]), rewards[rows].astype(np.float64), (terminated | truncated)[rows]


def _make_environment(environment: Environment) -> Any:
    try:
        import gymnasium
    except ImportError as error:
        raise BadInput('episodes are played in gymnasium; install it with: pip install "doxa[rl]"') from error
    if not isinstance(environment, str):
        env = environment()
        if not isinstance(env, gymnasium.Env):
            raise BadInput(
                f"environment must be a name or a function that makes a gymnasium.Env; it made a {type(env).__name__}"
            )
        return env
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="gymnasium|pygame")
            return gymnasium.make(environment, disable_env_checker=True)
    except gymnasium.error.DependencyNotInstalled as error:
        raise BadInput(f'{environment} needs more than gymnasium itself: pip install "doxa[rl]"') from error
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        suggestion = did_you_mean(environment, gymnasium.registry)
        raise BadInput(f"gymnasium has no environment {environment!r}{suggestion}") from error


def _observation_shape(space: Any) -> tuple[int, ...]:
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        return tuple(space.shape)
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    raise BadInput(
        f"the environment shows {space}; a net can be given Box observations, or Discrete ones as zeros and a one: "
        "wrap it in gymnasium.wrappers.FlattenObservation"
    )
