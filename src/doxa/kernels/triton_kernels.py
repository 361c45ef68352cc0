"""The kernels themselves, in Triton. doxa/flat and doxa/random/philox.py state each in torch."""

# mypy: ignore-errors

import triton
import triton.language as tl

LANES = tl.constexpr(256)
GROUP = tl.constexpr(1024)
FAR = tl.constexpr(80.0)


@triton.jit
def _words(seed, high, group):
    """Philox4x32-10 at the lanes of a group: four words each."""
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
    u = ((radius >> 1).to(tl.float32) + 0.5) * 4.656612873077393e-10
    length = tl.sqrt(tl.abs(2.0 * tl.log(u)))
    turn = angle.to(tl.int32, bitcast=True).to(tl.float32) * 1.462918079267160e-09
    return length * tl.cos(turn), length * tl.sin(turn)


@triton.jit
def _softplus(rho):
    x = tl.minimum(tl.maximum(rho, -FAR), FAR)
    t = tl.exp(-tl.abs(x))
    # log(1 + t) for t in (0, 1]: 2 atanh(t / (2 + t)), to a small relative error
    s = t / (2.0 + t)
    q = s * s
    p = ((0.14012233 * q + 0.1399957) * q + 0.2001085) * q + 0.33333207
    slope = tl.where(x > 0, 1.0, t) / (1.0 + t)
    return tl.maximum(x, 0.0) + 2.0 * (s + s * q * p), slope


@triton.jit(do_not_specialize=["start", "number"])
def normals(seeds, step, number, start, n, sign, stride, out):
    group = tl.program_id(0).to(tl.int64) + start // GROUP
    k = tl.program_id(1).to(tl.int64)
    high = tl.load(step) + (number.to(tl.int64) << 32)
    w0, w1, w2, w3 = _words(tl.load(seeds + k), high, group)
    z0, z1 = _box_muller(w0, w1)
    z2, z3 = _box_muller(w2, w3)
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
    at = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    k = tl.program_id(1).to(tl.int64)
    s, _ = _softplus(tl.load(rho + k * rho_stride + at, mask=at < n, other=0.0))
    tl.store(scale + k * stride + at, s * s if SQUARED else s, mask=at < n)


@triton.jit
def _adam(x, g, m, v, rate, first, new_first, second, new_second, small, left_first, left_second):
    mean = first * m + new_first * g
    square = second * v + new_second * g * g
    return x - rate / left_first * mean / (tl.sqrt(square / left_second) + small), mean, square


@triton.jit
def descend(n, weights, about, prior_stride, centres, precisions, gradient_stride, gradient, given_stride, given,
            mean_stride, stride, epsilon, mean, rho, rates, lefts, first, new_first, second, new_second, small,
            m1, v1, m2, v2,
            TURN: tl.constexpr, PULL: tl.constexpr, HAS_CENTRES: tl.constexpr, STEP: tl.constexpr,
            DRAWS: tl.constexpr, NETS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """Turns: 0 given, 1 times epsilon, 2 times twice the scale. Pulls: 0 none, 1 a line, 2 lines, 3 a mixture."""
    at = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    k = tl.program_id(1).to(tl.int64)
    inside = at < n
    weight = tl.load(weights + k)
    p, q = k * mean_stride + at, k * stride + at
    m = tl.load(mean + p, mask=inside, other=0.0)
    r = tl.load(rho + q, mask=inside, other=0.0)
    s, slope = _softplus(r)
    by_mean = tl.zeros([WIDE], tl.float32)
    by_scale = tl.zeros([WIDE], tl.float32)
    for d in tl.static_range(DRAWS):
        row = k + d * NETS
        g = tl.load(gradient + row * gradient_stride + at, mask=inside, other=0.0)
        if TURN == 1:
            e = tl.load(epsilon + row * stride + at, mask=inside, other=0.0)
        if PULL == 3:
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
    by_rho = (by_scale - weight / s) * slope
    if STEP:
        rate = tl.load(rates + k)
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
