"""The kernels themselves, in Triton. doxa/flat and doxa/random/philox.py state each in torch.

They are those of flat.c, for the same reason: memory is the bound, and each of them goes through it once. Random
numbers are the same numbers: words are equal to the bit, normals to the rounding of log, sin and cos. A program works
on a group of 1,024 numbers, or on WIDE ones of an elementwise pass, of one net; nets are the grid's last axis, each
with a seed, a rate and a KL weight. The four parts of a group lie one behind the other, so that lanes write
neighbouring addresses.

A step is recorded as a CUDA graph and replayed. What changes from step to step is therefore read from memory: the
step's number and Adam's corrections, numbers to C, are addresses here. Numbers that do differ between launches are kept
from specialisation (`do_not_specialize`): Triton would compile once more for a 1, or for a multiple of 16.

A function that starts with an underscore is part of others; the rest are launched, each from one place: those of noise
by doxa/random/philox.py, draws and steps by doxa/flat. Addresses are worked out in 64 bits throughout: a fleet's matrix
of weights outgrows 32 long before it outgrows the memory. Nothing is summed across programs, so that no sum depends on
which of them ends first: runs repeat to the bit.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

LANES = tl.constexpr(256)
GROUP = tl.constexpr(1024)
FAR = tl.constexpr(80.0)  # rho is held within, as in flat.c


@triton.jit
def _words(seed, high, group):
    """Philox4x32-10 at the lanes of a group: four words each.

    Constants are made unsigned, as the words are: the upper half of a signed product is another one. A round needs both
    halves of two products of 32 by 32 bits; `umulhi` gives the upper one in an instruction, where products of 64 bits
    are made of four. `high` is the step and the stream's number, the same for all lanes. Salmon et al. (2011), Parallel
    random numbers: as easy as 1, 2, 3.
    """
    lane = tl.arange(0, LANES).to(tl.int64) + group * LANES
    c0 = (lane & 0xFFFFFFFF).to(tl.uint32)
    c1 = ((lane >> 32) & 0xFFFFFFFF).to(tl.uint32)
    zero = tl.zeros([LANES], tl.int64)
    c2 = ((zero + high) & 0xFFFFFFFF).to(tl.uint32)
    c3 = (((zero + high) >> 32) & 0xFFFFFFFF).to(tl.uint32)
    k0 = (seed & 0xFFFFFFFF).to(tl.uint32)
    k1 = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    for _ in tl.static_range(10):
        a, c = c0, c2
        c0 = tl.umulhi(tl.full([LANES], 0xCD9E8D57, tl.uint32), c) ^ c1 ^ k0
        c2 = tl.umulhi(tl.full([LANES], 0xD2511F53, tl.uint32), a) ^ c3 ^ k1
        c1 = c * tl.full([LANES], 0xCD9E8D57, tl.uint32)
        c3 = a * tl.full([LANES], 0xD2511F53, tl.uint32)
        k0 = k0 + tl.full([], 0x9E3779B9, tl.uint32)
        k1 = k1 + tl.full([], 0xBB67AE85, tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def _box_muller(radius, angle):
    """Two words into two normals; 0.5 keeps the logarithm's argument off zero.

    The factors are 2^-31 and pi * 2^-31: angles are signed words, from minus half a turn to half a turn. A GPU has
    instructions for log, sin and cos; the polynomials of flat.c would save nothing here. Hence normals that are equal
    to those of the CPU to rounding, not to the bit.
    """
    u = ((radius >> 1).to(tl.float32) + 0.5) * 4.656612873077393e-10
    length = tl.sqrt(tl.abs(2.0 * tl.log(u)))
    turn = angle.to(tl.int32, bitcast=True).to(tl.float32) * 1.462918079267160e-09
    return length * tl.cos(turn), length * tl.sin(turn)


@triton.jit
def _softplus(rho):
    """The scale of a rho, and its slope: both are made of exp(-|rho|), and the second costs next to nothing.

    The logarithm's polynomial is that of flat.c: `tl.log(1 + t)` is zero for a rho of -20, and the KL's slope has 1/s.
    """
    x = tl.minimum(tl.maximum(rho, -FAR), FAR)  # 1/s is a slope of the KL, and must be finite
    t = tl.exp(-tl.abs(x))
    # log(1 + t) for t in (0, 1]: 2 atanh(t / (2 + t)), to a small relative error
    s = t / (2.0 + t)
    q = s * s
    p = ((0.14012233 * q + 0.1399957) * q + 0.2001085) * q + 0.33333207
    slope = tl.where(x > 0, 1.0, t) / (1.0 + t)
    return tl.maximum(x, 0.0) + 2.0 * (s + s * q * p), slope


@triton.jit(do_not_specialize=["start", "number"])
def normals(seeds, step, number, start, n, sign, stride, out):
    """Numbers of each net's stream from `start` on; the first and last group of a stretch are written in part.

    `step` is an address, as a recorded step counts on by itself; `sign` is -1 in the second of an antithetic pair.
    """
    group = tl.program_id(0).to(tl.int64) + start // GROUP
    k = tl.program_id(1).to(tl.int64)
    high = tl.load(step) + (number.to(tl.int64) << 32)
    w0, w1, w2, w3 = _words(tl.load(seeds + k), high, group)
    z0, z1 = _box_muller(w0, w1)
    z2, z3 = _box_muller(w2, w3)
    # Below zero where the stretch begins inside a group: those numbers are another stretch's.
    at = group * GROUP - start + tl.arange(0, LANES)
    to = out + k * stride
    tl.store(to + at, sign * z0, mask=(at >= 0) & (at < n))
    at += LANES
    tl.store(to + at, sign * z1, mask=(at >= 0) & (at < n))
    at += LANES
    tl.store(to + at, sign * z2, mask=(at >= 0) & (at < n))
    at += LANES
    tl.store(to + at, sign * z3, mask=(at >= 0) & (at < n))


@triton.jit(do_not_specialize=["number"])
def signs(seeds, step, number, n, stride, out):
    """1 or -1, a bit of a word each. The 32 bits are an axis of the grid: words are made anew for each, not stored.

    Ten rounds of arithmetic are cheaper than a trip to memory, and 32 times as many programs keep a GPU busy where a
    layer has few signs to make. The order of the numbers is that of `doxa_signs` in flat.c.
    """
    group = tl.program_id(0).to(tl.int64)
    bit = tl.program_id(1)
    k = tl.program_id(2).to(tl.int64)
    high = tl.load(step) + (number.to(tl.int64) << 32)
    w0, w1, w2, w3 = _words(tl.load(seeds + k), high, group)
    at = group * 32 * GROUP + bit * GROUP + tl.arange(0, LANES)
    to = out + k * stride
    tl.store(to + at, 1.0 - 2.0 * ((w0 >> bit) & 1).to(tl.float32), mask=at < n)
    at += LANES
    tl.store(to + at, 1.0 - 2.0 * ((w1 >> bit) & 1).to(tl.float32), mask=at < n)
    at += LANES
    tl.store(to + at, 1.0 - 2.0 * ((w2 >> bit) & 1).to(tl.float32), mask=at < n)
    at += LANES
    tl.store(to + at, 1.0 - 2.0 * ((w3 >> bit) & 1).to(tl.float32), mask=at < n)


@triton.jit(do_not_specialize=["threshold", "number"])
def kept(seeds, step, number, n, threshold, value, stride, out):
    """A dropout mask. Words are compared in 64 bits: a threshold above half their range is below zero in 32.

    `value` is 1/(1 - rate), and the threshold rate * 2^32: whole numbers, so that CPU and GPU drop the same units.
    """
    group = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1).to(tl.int64)
    high = tl.load(step) + (number.to(tl.int64) << 32)
    w0, w1, w2, w3 = _words(tl.load(seeds + k), high, group)
    least = threshold.to(tl.int64)
    at = group * GROUP + tl.arange(0, LANES)
    to = out + k * stride
    tl.store(to + at, tl.where(w0.to(tl.int64) >= least, value, 0.0), mask=at < n)
    at += LANES
    tl.store(to + at, tl.where(w1.to(tl.int64) >= least, value, 0.0), mask=at < n)
    at += LANES
    tl.store(to + at, tl.where(w2.to(tl.int64) >= least, value, 0.0), mask=at < n)
    at += LANES
    tl.store(to + at, tl.where(w3.to(tl.int64) >= least, value, 0.0), mask=at < n)


@triton.jit
def _place(z, at, n, sign, mean, rho, scale, epsilon, w, HAS_MEAN: tl.constexpr, HAS_RHO: tl.constexpr,
           HAS_SCALE: tl.constexpr, HAS_EPSILON: tl.constexpr):  # fmt: skip
    """w = mean + scale * epsilon at one part of a group, scale and epsilon kept where there is room for them.

    What is not there has a flag, not a null address: a kernel is compiled for each set of flags, without a branch.
    """
    inside = (at >= 0) & (at < n)
    noise = sign * z
    if HAS_RHO:
        s, _ = _softplus(tl.load(rho + at, mask=inside, other=0.0))
        if HAS_SCALE:
            tl.store(scale + at, s, mask=inside)
    else:
        s = tl.load(scale + at, mask=inside, other=0.0)
    if HAS_EPSILON:
        tl.store(epsilon + at, noise, mask=inside)
    value = s * noise
    if HAS_MEAN:
        value += tl.load(mean + at, mask=inside, other=0.0)
    tl.store(w + at, value, mask=inside)


@triton.jit(do_not_specialize=["start", "number"])
def draw(seeds, step, number, start, n, sign, mean_stride, stride, w_stride, mean, rho, scale, epsilon, w,
         HAS_MEAN: tl.constexpr, HAS_RHO: tl.constexpr, HAS_SCALE: tl.constexpr,
         HAS_EPSILON: tl.constexpr):  # fmt: skip
    """A net's weights drawn: reads mean and rho, writes w. Neither scale nor epsilon need ever be in memory.

    Where a step's pull-back wants epsilon it is kept here (`HAS_EPSILON`), not made again as flat.c can: on a GPU its
    vector is read faster than Philox makes it. `start` is the stretch's first weight in the whole net.
    """
    group = tl.program_id(0).to(tl.int64) + start // GROUP
    k = tl.program_id(1).to(tl.int64)
    high = tl.load(step) + (number.to(tl.int64) << 32)
    w0, w1, w2, w3 = _words(tl.load(seeds + k), high, group)
    z0, z1 = _box_muller(w0, w1)
    z2, z3 = _box_muller(w2, w3)
    at = group * GROUP - start + tl.arange(0, LANES)
    m = mean + k * mean_stride
    r, s, e, to = rho + k * stride, scale + k * stride, epsilon + k * stride, w + k * w_stride
    _place(z0, at, n, sign, m, r, s, e, to, HAS_MEAN, HAS_RHO, HAS_SCALE, HAS_EPSILON)
    _place(z1, at + LANES, n, sign, m, r, s, e, to, HAS_MEAN, HAS_RHO, HAS_SCALE, HAS_EPSILON)
    _place(z2, at + 2 * LANES, n, sign, m, r, s, e, to, HAS_MEAN, HAS_RHO, HAS_SCALE, HAS_EPSILON)
    _place(z3, at + 3 * LANES, n, sign, m, r, s, e, to, HAS_MEAN, HAS_RHO, HAS_SCALE, HAS_EPSILON)


@triton.jit
def fill_scale(n, rho_stride, stride, rho, scale, SQUARED: tl.constexpr, WIDE: tl.constexpr):
    """softplus(rho), or its square: the second leaf of local noise.

    The slope that comes with it is not stored: the step makes it again from rho, which it reads anyway.
    """
    at = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    k = tl.program_id(1).to(tl.int64)
    s, _ = _softplus(tl.load(rho + k * rho_stride + at, mask=at < n, other=0.0))
    tl.store(scale + k * stride + at, s * s if SQUARED else s, mask=at < n)


@triton.jit
def _adam(x, g, m, v, rate, first, new_first, second, new_second, small, left_first, left_second):
    """One step of Adam on one number. Kingma & Ba (2015), Adam: a method for stochastic optimization.

    1 - decay is given beside the decay, for near 1 it would lose its digits in float32.
    """
    mean = first * m + new_first * g
    square = second * v + new_second * g * g
    return x - rate / left_first * mean / (tl.sqrt(square / left_second) + small), mean, square


@triton.jit
def descend(n, weights, about, prior_stride, centres, precisions, gradient_stride, gradient, given_stride, given,
            mean_stride, stride, epsilon, mean, rho, rates, lefts, first, new_first, second, new_second, small,
            m1, v1, m2, v2,
            TURN: tl.constexpr, PULL: tl.constexpr, HAS_CENTRES: tl.constexpr, STEP: tl.constexpr,
            DRAWS: tl.constexpr, NETS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """The step of mean and rho: pull-back, KL, softplus' slope and Adam, from gradients by the leaves.

    by mean = sum of g + weight * t (m - c),   by rho = (sum of turned f + weight (t s - 1/s)) ds/drho

    It reads gradients, epsilon, mean, rho and four moments and writes all but the first two; what lies between is never
    in memory. Without STEP both gradients are written in the place of moments, for other optimisers. `about` has four
    numbers a net: centre and precision of a Gaussian; of a mixture centre, both precisions and log-odds. Turns: 0
    given, 1 times epsilon, 2 times twice the scale. Pulls: 0 none, 1 a line, 2 lines, 3 a mixture. They are numbered
    as ScalePullback and PriorGradientKind are in doxa/flat; as constants of the compilation they leave no branch.
    Rows of gradients are draw by draw, and within a draw net by net: row k + d * NETS.
    """
    at = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    k = tl.program_id(1).to(tl.int64)
    inside = at < n
    weight = tl.load(weights + k)
    # Behind a net's random weights its point estimates lie, in the mean but not in rho: two strides.
    p, q = k * mean_stride + at, k * stride + at
    m = tl.load(mean + p, mask=inside, other=0.0)
    r = tl.load(rho + q, mask=inside, other=0.0)
    s, slope = _softplus(r)
    by_mean = tl.zeros([WIDE], tl.float32)
    by_scale = tl.zeros([WIDE], tl.float32)
    # All draws of a step run side by side on a GPU: their rows are summed here, in one order, and never in memory.
    for d in tl.static_range(DRAWS):
        row = k + d * NETS
        g = tl.load(gradient + row * gradient_stride + at, mask=inside, other=0.0)
        if TURN == 1:
            e = tl.load(epsilon + row * stride + at, mask=inside, other=0.0)
        if PULL == 3:
            # No closed KL: the slope is taken at this draw, a share of the weight each, and pulled back with g.
            centre, wide = tl.load(about + 4 * k), tl.load(about + 4 * k + 1)
            gap, odds = tl.load(about + 4 * k + 2) - wide, tl.load(about + 4 * k + 3)
            distance = m + s * e - centre
            narrow = tl.sigmoid(-odds - 0.5 * gap * distance * distance)
            g += weight / DRAWS * distance * (wide + gap * narrow)
            by_scale += g * e
        else:
            found = tl.load(given + row * given_stride + at, mask=inside, other=0.0)
            if TURN == 1:
                found = found * e
            if TURN == 2:
                found = found * 2.0 * s
            by_scale += found
        by_mean += g
    if PULL == 1:
        pull = weight * tl.load(about + 4 * k + 1)
        by_mean += pull * (m - tl.load(about + 4 * k))
        by_scale += pull * s
    if PULL == 2:
        c = k * prior_stride + at
        pull = weight * tl.load(precisions + c, mask=inside, other=0.0)
        middle = tl.load(centres + c, mask=inside, other=0.0) if HAS_CENTRES else 0.0
        by_mean += pull * (m - middle)
        by_scale += pull * s
    by_rho = (by_scale - weight / s) * slope  # -1/s is the entropy's, whatever the prior
    if STEP:
        rate = tl.load(rates + k)
        # A net that rests is masked, not multiplied by zero: NaN times zero is NaN.
        awake = inside & (rate >= 0)
        a, b = tl.load(lefts), tl.load(lefts + 1)
        new, mm, vv = _adam(m, by_mean, tl.load(m1 + p, mask=inside, other=0.0),
                            tl.load(v1 + p, mask=inside, other=0.0), rate, first, new_first, second, new_second,
                            small, a, b)  # fmt: skip
        tl.store(mean + p, new, mask=awake)
        tl.store(m1 + p, mm, mask=awake)
        tl.store(v1 + p, vv, mask=awake)
        new, mm, vv = _adam(r, by_rho, tl.load(m2 + q, mask=inside, other=0.0),
                            tl.load(v2 + q, mask=inside, other=0.0), rate, first, new_first, second, new_second,
                            small, a, b)  # fmt: skip
        tl.store(rho + q, new, mask=awake)
        tl.store(m2 + q, mm, mask=awake)
        tl.store(v2 + q, vv, mask=awake)
    else:
        tl.store(m1 + p, by_mean, mask=inside)
        tl.store(m2 + q, by_rho, mask=inside)


@triton.jit
def adam(n, gradient_stride, gradient, stride, x, m, v, rates, lefts, first, new_first, second, new_second, small,
         WIDE: tl.constexpr):  # fmt: skip
    """Adam on any vector, whose gradient is there: points, and what has no closed pull-back.

    Here a net that rests is left out of the reading too: nothing of it is needed.
    """
    at = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    k = tl.program_id(1).to(tl.int64)
    rate = tl.load(rates + k)
    inside = (at < n) & (rate >= 0)
    g = tl.load(gradient + k * gradient_stride + at, mask=inside, other=0.0)
    p = k * stride + at
    new, mm, vv = _adam(tl.load(x + p, mask=inside, other=0.0), g, tl.load(m + p, mask=inside, other=0.0),
                        tl.load(v + p, mask=inside, other=0.0), rate, first, new_first, second, new_second, small,
                        tl.load(lefts), tl.load(lefts + 1))  # fmt: skip
    tl.store(x + p, new, mask=inside)
    tl.store(m + p, mm, mask=inside)
    tl.store(v + p, vv, mask=inside)
