"""The map of all random streams: every number of a stream stands here, and nowhere else.

seed of         step is          number                  constants                  what comes from it
a net           the step         65536 s + 0             SAMPLE, WEIGHTS            ε of the weights in sample s
                                 65536 s + 1             PRIOR                      the draw at which a prior is asked
                                 65536 s + 2 + i         ROWS                       the rows' noise, the i-th asked for
                the step         0x7FFE0000 + p          LANGEVIN_NOISE             the noise of parameter p
                step of a game   0x7FFF0000              BANDIT_BATCH               the minibatches of its updates
                                 0x7FFF0001              BANDIT_POLICY              what a policy decides by lot
                                 0x7FFF0100 + 256 s + i  BANDIT_DRAWS               draw s of the weights
                the epoch        0x7FFFFFFF              ORDER                      the order of the rows, shuffled
a draw          0                0 + i                   DRAW                       its weights; of dropout, mask i
an episode      0                0                       BANDIT_CONTEXTS            which context comes
                                 1                       BANDIT_REWARDS             what each action would pay
                                 2                       BANDIT_RANDOM_ACTIONS      actions of one who does not look
a perturbation  the generation   0                       SEARCH_WEIGHTS             ε of weights drawn whole
  of a net                       1 + i                   SEARCH_ROWS                the rows' noise, the i-th asked for
                                 1                       SEARCH_FACTORS             both thin matrices, of low rank
a perturbation  the generation   0                       SEARCH_WEIGHTS             ε of the point
  of a point                     2                       SEARCH_KEEP                which old points stay
                                 3                       SEARCH_PROPOSE             new points
                                 4                       SEARCH_ACCEPT              which of them are taken
                                 5                       SEARCH_REFILL              points in the place of lost ones
a chain of a     the trajectory  0                       CHAIN_MOMENTUM             the momentum that it sets out with
  reference                      1                       CHAIN_ACCEPT               whether it goes where that leads
                                 2                       CHAIN_TRIAL                momenta to find a step size with
all its chains   the trajectory  0                       CHAIN_LENGTH               how many steps a trajectory has

Nothing is drawn "next". A random number is a function of four things: a seed, a step, the number of a stream and an
index within it. The seed is Philox's key; the rest is its counter of 128 bits, from low to high

    index (64 bits) | step (32 bits) | number (31 bits, so that the upper half is a positive 64-bit integer)

and its words are what Philox4x32-10 makes of them (`philox.py`). So a run that is resumed, split over workers, recorded
as a graph or grouped with others into a fleet meets the same numbers, and noise that was used may be forgotten and made
again. Two uses of one address would be the same numbers twice: what has one seed and may have one step must differ in
its number, and the table is there to see that at a glance. Salmon et al. (2011), Parallel random numbers: as easy as
1, 2, 3.

Where numbers meet, and why it does no harm. The last sample's numbers are those of Langevin noise: a sample has a
spread to be drawn with, and the Langevin stepper refuses whatever has one. Steps, steps of a game and epochs count
different things under one seed: their numbers are apart. Rows' noise and thin matrices, both from 1 on, belong to
estimators of which a search has one; what mixes generations, from 2 on, belongs to searches of points, whose seeds are
others than those of nets.

Seeds are hashes of keys (`keys.py`), tuples of numbers and words that say whose numbers they are. A seed may itself
begin a key. All keys:

(seed, "net", j)                                net j of a member: its streams above; a fresh start of its layers
(seed, "net", j, "mean") and (…, "rho")         where the means and rhos of a mean field begin, if at random
(seed, "net", j, "search", "perturbation", n)   perturbation n of a net that is searched for
(net's seed, step, number)                      what layers draw by themselves in a step, as nn.Dropout does
(net's seed, step, "middle")                    the same at the middle of a search
(perturbation's seed, generation, "net")        the same in a perturbation
(net's seed, "order", epoch)                    a DataLoader's order
(net's seed, "batch", epoch, b)                 what its data set draws for batch b
("example",)                                    the few rows of a DataLoader that a net is tried on
(seed, "predict", s)                            draw s of a belief that predicts
(seed, "validation", s)                         … that is watched while it learns, the same every epoch
(seed, "attack", s)                             … that is attacked
(0, "kl", s)                                    … whose KL has no closed form
(seed, "free energy", "kl", s)                  … whose free energy is asked for, where its KL has none
(0, "mean"), (0,)                               … of points alone, which heed no key
(…, "member", k, s), (0, "kl", k, s)            the same of member k of a mixture
(seed, "bandit")                                an episode of a bandit, the same for all agents of a seed
(seed, "search", "perturbation", n)             perturbation n of a search of points: functions and policies
(seed, "generation", g, "episode", k)           episode k of every policy of a generation
(…, g, "perturbation", n, "episode", k)         … of policy n, where each plays its own
(seed, "trial", g, "episode", k)                … of the policy in the middle, on trial
(seed, "play", "episode", k)                    … of a policy that has been found
(seed, "chain", k)                              chain k of a reference
(seed, "chain", k, "start")                     … where it begins: a fresh start of the net's layers
(seed, "trajectories")                          what its chains have in common
(seed, "folds")                                 which rows are held out together
(seed, "member", k)                             the start of member k of an automatic committee
(draws, "half sampling")                        halves of so many draws
(0, "entropy")                                  points at which the entropy of a mixture of Gaussians is estimated

and of replications (seed, "quality" or "minibatch" or "estimates", "perturbation", n), (seed, "divergence", n),
(seed, "mushrooms"), (0, "histogram", s), (0, "batches"), (split, "rows set aside") and (split, job, "start").
"""

from __future__ import annotations

# Steps of learning, by the seed of a net. Every sample of a step has numbers of its own, SAMPLE times its place; in an
# antithetic pair both have those of the pair, and differ in the sign.
SAMPLE = 1 << 16
WEIGHTS = 0  # index i is weight i, whatever segments it is drawn in: ε can be made again for any stretch
PRIOR = 1  # where rows have noise of their own no weights are drawn, and a prior without a closed KL wants some
ROWS = 2  # and on, a number each time that an operation asks
MAX_ROW_REQUESTS = SAMPLE - ROWS  # the next number is the next sample's

# Above the numbers of a point's one sample; one for each parameter, by its place among the gradient's.
LANGEVIN_NOISE = 0x7FFE0000

# Steps of a game, by the same seeds of nets: above all samples, because both count from 0.
BANDIT_BATCH = 0x7FFF0000
BANDIT_POLICY = 0x7FFF0001  # of an agent's first net: an ensemble decides once
BANDIT_DRAWS = 0x7FFF0100
# Dropout takes one for each weight that it masks, everything else the first; mask 256 of a draw is mask 0 of the next.
BANDIT_STREAMS_PER_DRAW = 0x100
BANDIT_MAX_DRAWS = 200  # below ORDER

ORDER = 0x7FFFFFFF  # epochs count from 0 as steps do: the last number there is

MAX_SAMPLES = BANDIT_BATCH // SAMPLE

# Draws of a belief that is learned, and whatever else a key is hashed for: each has a seed to itself.
DRAW = 0

# What happens in an episode of a bandit, before any agent has decided: it is the same for all of them.
BANDIT_CONTEXTS = 0
BANDIT_REWARDS = 1
BANDIT_RANDOM_ACTIONS = 2

# A generation of a search, by the seeds of its perturbations; mirror images share one.
SEARCH_WEIGHTS = 0
SEARCH_ROWS = 1  # and on, as ROWS
SEARCH_FACTORS = 1

# The mixing of two generations, by the seed of the first perturbation, whose own number is SEARCH_WEIGHTS.
SEARCH_KEEP = 2
SEARCH_PROPOSE = 3
SEARCH_ACCEPT = 4
SEARCH_REFILL = 5

# Trajectories of a reference, by the seeds of its chains; their lengths, by a seed that all chains share.
CHAIN_MOMENTUM = 0
CHAIN_ACCEPT = 1
CHAIN_TRIAL = 2
CHAIN_LENGTH = 0
