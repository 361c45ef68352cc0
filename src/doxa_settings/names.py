"""The members of the rooms and the data sets by name, for help and completion without importing any of them."""

from __future__ import annotations

NETS = ("mlp", "lenet5")
ACTIVATIONS = ("relu", "tanh", "gelu", "silu", "elu", "softplus", "sigmoid")
TASKS = ("regression", "classification")
# And `ensemble`, by --members.
LEARNERS = ("auto", "variational", "point", "dropout", "langevin", "swa", "ema", "search")
PRIORS = ("gaussian", "laplace", "scale_mixture", "student_t")
POSTERIORS = ("mean_field",)  # the ones that a learner can be told to learn
NOISES = ("shared", "local", "flipout")
LIKELIHOODS = ("categorical", "bernoulli", "gaussian", "gaussian_learned", "gaussian_per_input")
KL_WEIGHTS = ("uniform", "geometric", "annealed", "tempered")
RATES = ("constant", "step", "cosine", "cyclical", "polynomial")
OPTIMISERS = ("adam", "adamw", "sgd", "rmsprop", "adagrad")
PERTURBATIONS = ("local", "weight_space", "low_rank")
OBJECTIVES = ("zero_one", "f1")
FUNCTIONS = ("sphere", "himmelblau", "rosenbrock", "rastrigin")
PRECISIONS = ("bfloat16", "float16")
DATA = (
    "digits",
    "curve",
    "two_moons",
    "mnist",
    "fashion_mnist",
    "cifar10",
    "mushroom",
    "ionosphere",
    "pima_diabetes",
    "uci_regression/bostonHousing",
    "uci_regression/concrete",
    "uci_regression/kin8nm",
    "uci_regression/naval-propulsion-plant",
    "uci_regression/power-plant",
    "uci_regression/protein-tertiary-structure",
    "uci_regression/wine-quality-red",
    "temperature/brussels",
    "temperature/rio_de_janeiro",
    "temperature/uccle",
)
