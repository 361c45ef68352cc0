"""PRIOR: what is believed of a weight before any data. To add one: a file here and a line in TABLE."""

from doxa.priors.gaussian import Gaussian as gaussian
from doxa.priors.laplace import Laplace as laplace
from doxa.priors.scale_mixture import ScaleMixture as scale_mixture
from doxa.priors.student_t import StudentT as student_t

TABLE = {"gaussian": gaussian, "laplace": laplace, "scale_mixture": scale_mixture, "student_t": student_t}

__all__ = ["TABLE", "gaussian", "laplace", "scale_mixture", "student_t"]
