"""Other libraries, each a file: the mean-field Gaussian of its users, given the same start, prior and objective.

Every weight has the prior N(0, 1). Each library gets its best: fused Adam wherever it leaves the choice of optimiser,
and the KL in closed form wherever it has one. BatchNorm's own weights stay plain numbers, as in each library's
examples, but for posteriors, which knows no layers.
"""

from doxa_bench.contenders.bayesian_torch import LIBRARY as BAYESIAN_TORCH
from doxa_bench.contenders.blitz import LIBRARY as BLITZ
from doxa_bench.contenders.library import LearningTask, Library, describe_libraries, suppress_warnings, try_library
from doxa_bench.contenders.posteriors import LIBRARY as POSTERIORS
from doxa_bench.contenders.torch_uncertainty import LIBRARY as TORCH_UNCERTAINTY
from doxa_bench.contenders.torchbnn import LIBRARY as TORCHBNN
from doxa_bench.contenders.tyxe import LIBRARY as TYXE

TABLE: dict[str, Library] = {
    library.name: library for library in (TORCHBNN, BAYESIAN_TORCH, BLITZ, TORCH_UNCERTAINTY, POSTERIORS, TYXE)
}

__all__ = ["TABLE", "LearningTask", "Library", "describe_libraries", "suppress_warnings", "try_library"]
