"""NOISE: how randomness meets an operation while learning. To add one: a file here and a line below."""

from doxa import registry
from doxa.noise.flipout import flipout as flipout
from doxa.noise.leaves import Leaves as Leaves
from doxa.noise.leaves import Noise as Noise
from doxa.noise.local import local as local
from doxa.noise.shared import shared as shared

TABLE: dict[str, Noise] = registry.members(globals())
EXAMPLES = {name: (noise,) for name, noise in TABLE.items()}


def register(name: str, noise: Noise) -> None:
    """Make a noise of your own reachable by name, in settings and commands, as those of `TABLE` are."""
    registry.enter(TABLE, name, noise, kind=Noise)
