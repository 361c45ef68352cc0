/* Passes over flat vectors of float32, each once through memory: what a training step does besides running the net.
 *
 * Such a step is bound by memory, not by arithmetic: a large net's vectors fit into no cache, and every operation of
 * torch's reads and writes them whole. Written as one loop, the draw of a weight
 *
 *     reads mean, rho                                          writes w, epsilon where it is kept
 *
 * and the step of its mean m and scale s = softplus(rho), pull-back, KL and Adam together,
 *
 *     reads gradients, epsilon, m, rho and four moments        writes m, rho and four moments
 *
 * instead of a pass for each sign in the equations. Gradients by mean and rho, scales and normals live for a chunk, in
 * the cache.
 *
 * Written so that a compiler turns every loop over LANES into vector instructions; no libm call, no branch inside.
 * doxa/flat states each pass in torch; tests hold the two equal to rounding. Nothing is summed over a vector: threads
 * share out stretches, and how many there are changes no bit.
 *
 * How to read a signature. `members` nets learn side by side; `n` numbers of each are worked on, a row of every matrix,
 * and a stride leads from one row to the next: rows are stretches of longer ones, for a pass goes over the weights of
 * one noise. What a net has of its own (seed, rate, KL weight) is an array with an entry a member; what all share is a
 * number. An address may be null where the text says "where there is room" or "where it is given".
 *
 * How to read the file. Functions of one number come first, then random numbers, then the walk over groups and chunks
 * that every pass shares, then the passes: draws, scales, steps. To add a pass, state it in doxa/flat, write it here,
 * enter its types in SIGNATURES (kernels/__init__.py) and hold the two against each other in tests/test_native.py.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "rounding tricks below need the sums as they are written"
#endif

/* Sizes, by measurement: smaller groups call Philox more often, larger ones leave the first cache. LANES and GROUP are
 * also the order of the numbers in a stream, on every device: to change them changes all random numbers. */
#define LANES 256          /* counters that are worked on together: a multiple of every vector unit's width */
#define GROUP (4 * LANES)  /* the numbers that come of them, as Philox gives four words a counter */
#define FAR 80.0f          /* rho is held within: beyond, 1/s or the exponential would leave float32 */
#define THREADS_PAY 32768  /* numbers below which waking threads takes longer than the work */

/* The bits of a number, by memcpy: a cast of pointers would break C's aliasing rules, and compiles to the same. */
static inline float as_float(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline uint32_t as_bits(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }

/* Natural logarithm of a positive normal number: x = 2^e (1 + m), log x = e log 2 + log(1 + m), the last by a
 * polynomial that was fitted to the interval. Like those below, it is off by two parts in 10^7 at most. libm's logf
 * would be called once for each number, which keeps the loop around it from becoming vector instructions. */
static inline float ln(float x) {
    uint32_t shifted = as_bits(x) - 0x3f3504f3u; /* the mantissa is taken from sqrt(1/2) to sqrt(2) */
    float exponent = (float)((int32_t)shifted >> 23);
    float m = as_float((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float p = 0.0873475f;
    p = p * m - 0.14307483f;
    p = p * m + 0.14917989f;
    p = p * m - 0.16570514f;
    p = p * m + 0.19962071f;
    p = p * m - 0.25001755f;
    p = p * m + 0.3333395f;
    p = p * m - 0.49999992f;
    return exponent * 0.693147181f + (m + m * m * p);
}

/* exp(x) for |x| up to 87: 2^n exp(r), with n the whole number nearest to x / log 2 and |r| at most log(2)/2. */
static inline float expo(float x) {
    /* 1.5 * 2^23 has no room for a fraction: to add it rounds. -ffast-math would see a sum of zero. */
    float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    /* log 2 in two parts, the first with few enough bits that n times it is exact (Cody and Waite). */
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 0.00139505f;
    p = p * r + 0.00836888f;
    p = p * r + 0.04166621f;
    p = p * r + 0.16666519f;
    p = p * r + 0.50000001f;
    return (1.0f + (r + r * r * p)) * as_float((uint32_t)((int32_t)n + 127) << 23);
}

/* log(1 + y) for y from 0 to 1, to a small relative error: 2 atanh(y / (2 + y)). By ln(1 + y) the scale of a rho of -20
 * would be zero, and 1/s is a slope of the KL. */
static inline float ln1p(float y) {
    float s = y / (2.0f + y), q = s * s;
    float p = 0.14012233f;
    p = p * q + 0.1399957f;
    p = p * q + 0.2001085f;
    p = p * q + 0.33333207f;
    return 2.0f * (s + s * q * p);
}

/* A trained rho stays far inside; one that runs away keeps a finite slope, by which it can come back. */
static inline float within(float x) { return x < -FAR ? -FAR : (x > FAR ? FAR : x); }

/* log(1 + exp(rho)) without overflow: max(rho, 0) + log(1 + exp(-|rho|)). */
static inline float softplus(float rho) {
    float x = within(rho);
    return (x > 0.0f ? x : 0.0f) + ln1p(expo(-fabsf(x)));
}

/* Of a difference that may be large either way: held within, for exp(-x) alone would overflow. */
static inline float sigmoid(float x) { return 1.0f / (1.0f + expo(-within(x))); }

/* One round of Philox: two products of 32 by 32 bits, whose halves are crossed and mixed with the key, which moves on
 * by Weyl's constants. Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3. */
#define ROUND                                                             \
    {                                                                     \
        uint64_t p = (uint64_t)0xD2511F53u * a, q = (uint64_t)0xCD9E8D57u * c; \
        a = (uint32_t)(q >> 32) ^ b ^ k0;                                 \
        b = (uint32_t)q;                                                  \
        c = (uint32_t)(p >> 32) ^ d ^ k1;                                 \
        d = (uint32_t)p;                                                  \
        k0 += 0x9E3779B9u;                                                \
        k1 += 0xBB67AE85u;                                                \
    }

/* Philox4x32-10 at LANES counters, the words of each in four rows; `high` is the counters' upper half, a step and the
 * number of a stream (doxa/random/streams.py). There is no state: any group can be made at any time, by any thread.
 * That is why noise need not be stored between the draw and the step that multiplies with it. */
static void philox(uint64_t key, uint64_t high, uint64_t group, uint32_t *restrict words) {
    uint32_t first = (uint32_t)(group * LANES), above = (uint32_t)(group * LANES >> 32);
    for (int i = 0; i < LANES; i++) {
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
        uint32_t a = first + (uint32_t)i, b = above, c = (uint32_t)high, d = (uint32_t)(high >> 32);
        ROUND ROUND ROUND ROUND ROUND ROUND ROUND ROUND ROUND ROUND
        words[i] = a;
        words[LANES + i] = b;
        words[2 * LANES + i] = c;
        words[3 * LANES + i] = d;
    }
}

/* Box and Muller: a row of radii and a row of angles into two rows of normal numbers. Ziggurat and its kin reject now
 * and then, so that a number's place would depend on those before it; this takes two words for two numbers, always. u
 * is never 0, so that no number is infinite: the largest is sqrt(2 log 2^32), 6.66. An angle is split into quarters of
 * a turn and a rest between -pi/4 and pi/4, where short polynomials are enough; the quarter says which of them is the
 * cosine and what signs they have. */
static void box_muller(const uint32_t *restrict words, float *restrict z) {
    for (int i = 0; i < LANES; i++) {
        float u = ((float)(int32_t)(words[i] >> 1) + 0.5f) * 0x1p-31f; /* signed: what vector units convert */
        float radius = sqrtf(fabsf(2.0f * ln(u)));
        uint32_t angle = words[LANES + i], quarter = (angle + 0x20000000u) >> 30;
        float t = (float)(int32_t)(angle - (quarter << 30)) * 1.46291808e-9f; /* from -pi/4 to pi/4 */
        float q = t * t;
        float sine = t + t * q * (-0.16666655f + q * (0.00833218f + q * -0.00019517f));
        float cosine = 1.0f - 0.5f * q + q * q * (0.0416666469f + q * (-0.00138873675f + q * 2.44384497e-5f));
        float x = quarter & 1 ? sine : cosine, y = quarter & 1 ? cosine : sine;
        z[i] = radius * as_float(as_bits(x) ^ (((quarter + 1) & 2) << 30));
        z[LANES + i] = radius * as_float(as_bits(y) ^ ((quarter & 2) << 30));
    }
}

/* The 1,024 normals of a group. Pairs are rows, not neighbours: a pair's two numbers lie LANES apart, so that neither
 * loop above gathers or scatters. */
static void normal_group(uint64_t key, uint64_t high, int64_t group, float *restrict z) {
    uint32_t words[GROUP];
    philox(key, high, (uint64_t)group, words);
    box_muller(words, z);
    box_muller(words + 2 * LANES, z + 2 * LANES);
}

/* Weights are numbered through the whole net, and weight i has number i of the stream, whatever stretches the net is
 * cut into: a layer's noise does not change when another layer gets a noise of its own.
 *
 * The part of a group that lies in [start, start + n): where it begins in the group, in the vector, and its length. */
typedef struct { int64_t inside, at, count; } Overlap;

/* Half-open throughout; `size` is the group's, and at both ends of a vector the part is shorter than that. */
static inline Overlap overlap(int64_t group, int64_t size, int64_t start, int64_t n) {
    int64_t low = group * size < start ? start : group * size;
    int64_t high = (group + 1) * size < start + n ? (group + 1) * size : start + n;
    Overlap part = {low - group * size, low - start, high - low};
    return part;
}

/* Every group of `size` numbers that [start, start + n) touches, for every member. A vector may begin in the middle of
 * a group, as the segment of a layer does: its numbers are made with the group's others, and those are left out.
 * Groups of all members are one list of jobs: ten small nets keep the threads as busy as a large one. The schedule is
 * static, as all jobs are equal; asking for the next one would cost more than it evens out. */
#define OVER_GROUPS(size)                                                                            \
    int64_t first_group = start / (size), groups = (start + n + (size) - 1) / (size) - first_group;  \
    _Pragma("omp parallel for schedule(static) if (members * n > THREADS_PAY)")                      \
    for (int64_t job = 0; job < members * groups; job++)
#define JOB(size)                                               \
    int64_t k = job / groups, group = first_group + job % groups; \
    Overlap part = overlap(group, size, start, n);

/* Numbers start to start + n of each member's stream, times sign; a row of `out` for each. The sign is that of an
 * antithetic pair: the second of two draws is the first one mirrored, from the same stream. */
void doxa_normals(int64_t members, const uint64_t *seeds, uint64_t high, int64_t start, int64_t n, float sign,
                  int64_t stride, float *out) {
    OVER_GROUPS(GROUP) {
        JOB(GROUP)
        float z[GROUP];
        normal_group(seeds[k], high, group, z);
        const float *restrict from = z + part.inside;
        float *restrict to = out + k * stride + part.at;
        for (int64_t i = 0; i < part.count; i++) to[i] = sign * from[i];
    }
}

/* Flipout wants a sign for each input and output of each row, far more numbers than a weight draw has: a bit each, 32
 * to a word, or making them would be most of the step.
 *
 * The first n signs of each member's stream: bit b of word row r, lane l of group g is number ((32 g + b) 4 + r) LANES + l. */
void doxa_signs(int64_t members, const uint64_t *seeds, uint64_t high, int64_t n, int64_t stride, float *out) {
    const int64_t start = 0;
    OVER_GROUPS(32 * GROUP) {
        JOB(32 * GROUP)
        uint32_t words[GROUP];
        philox(seeds[k], high, (uint64_t)group, words);
        float *to = out + k * stride + part.at;
        for (int bit = 0; bit < 32 && bit * GROUP < part.count; bit++) {
            int64_t count = part.count - bit * GROUP < GROUP ? part.count - bit * GROUP : GROUP;
            float *restrict row = to + bit * GROUP;
            for (int64_t i = 0; i < count; i++) row[i] = as_float(0x3f800000u | (words[i] >> bit) << 31);
        }
    }
}

/* `value` where a word of each member's stream is at least `threshold`, else 0: a dropout mask, one comparison of whole
 * numbers for each, and the scale 1/(1 - rate) already in it. Not by normals or floats between 0 and 1: the rate is a
 * share of 2^32 words, exact to the last of them, and the same mask on every device. */
void doxa_kept(int64_t members, const uint64_t *seeds, uint64_t high, int64_t n, uint32_t threshold, float value,
               int64_t stride, float *out) {
    const int64_t start = 0;
    OVER_GROUPS(GROUP) {
        JOB(GROUP)
        uint32_t words[GROUP];
        philox(seeds[k], high, (uint64_t)group, words);
        float *restrict to = out + k * stride + part.at;
        for (int64_t i = 0; i < part.count; i++) to[i] = words[i] >= threshold ? value : 0.0f;
    }
}

/* epsilon = sign * normals, w = mean + scale * epsilon, with scale = softplus(rho) first where rho is given.
 * Without a mean it is 0; scale and epsilon are kept where there is room for them. Three loops over a group rather than
 * one with questions in it: each is vector instructions, and between them z, s and e do not leave the cache. */
void doxa_draw(int64_t members, const uint64_t *seeds, uint64_t high, int64_t start, int64_t n, float sign,
               int64_t mean_stride, int64_t stride, int64_t w_stride, const float *mean, const float *rho,
               float *scale, float *epsilon, float *w) {
    OVER_GROUPS(GROUP) {
        JOB(GROUP)
        float z[GROUP], s[GROUP], e[GROUP];
        normal_group(seeds[k], high, group, z);
        const float *restrict from = z + part.inside;
        float *restrict to = w + k * w_stride + part.at;
        int64_t at = k * stride + part.at;
        if (rho) {
            const float *restrict r = rho + at;
            for (int64_t i = 0; i < part.count; i++) s[i] = softplus(r[i]);
            if (scale) memcpy(scale + at, s, (size_t)part.count * sizeof(float));
        } else {
            memcpy(s, scale + at, (size_t)part.count * sizeof(float));
        }
        for (int64_t i = 0; i < part.count; i++) e[i] = sign * from[i];
        if (epsilon) memcpy(epsilon + at, e, (size_t)part.count * sizeof(float));
        if (mean) {
            const float *restrict m = mean + k * mean_stride + part.at;
            for (int64_t i = 0; i < part.count; i++) to[i] = m[i] + s[i] * e[i];
        } else {
            for (int64_t i = 0; i < part.count; i++) to[i] = s[i] * e[i];
        }
    }
}

/* Passes without noise of their own go by stretches of two groups, whose temporaries stay in the cache: two gradients
 * of 2,048 numbers are 16 kB. A chunk begins at a multiple of CHUNK in the whole net, so that the noise it may have to
 * make again is whole groups. */
#define CHUNK (2 * GROUP)
#define OVER_CHUNKS OVER_GROUPS(CHUNK)
#define CHUNK_OF  \
    JOB(CHUNK)    \
    const int64_t at = part.at, count = part.count;

/* The noise of a chunk: what was kept of it, or the numbers of the member's stream made again in `room`. The second is
 * arithmetic in the place of a vector as long as the weights: less memory, and a step that takes longer. */
static const float *noise_of(const float *kept, const uint64_t *seed, uint64_t high, int64_t chunk, Overlap part,
                             float sign, float room[CHUNK]) {
    if (kept || !seed) return kept;
    for (int64_t g = 0; g < 2; g++)
        if (part.inside < (g + 1) * GROUP && part.inside + part.count > g * GROUP)
            normal_group(*seed, high, 2 * chunk + g, room + g * GROUP);
    if (sign != 1.0f)
        for (int64_t i = part.inside; i < part.inside + part.count; i++) room[i] *= sign;
    return room + part.inside;
}

/* scale = softplus(rho), or its square, the variance that local noise takes its second product with. */
void doxa_fill_scale(int64_t members, int64_t n, int squared, int64_t rho_stride, int64_t stride, const float *rho,
                     float *scale) {
    const int64_t start = 0;
    OVER_CHUNKS {
        CHUNK_OF
        const float *restrict r = rho + k * rho_stride + at;
        float *restrict s = scale + k * stride + at;
        if (squared)
            for (int64_t i = 0; i < count; i++) { float x = softplus(r[i]); s[i] = x * x; }
        else
            for (int64_t i = 0; i < count; i++) s[i] = softplus(r[i]);
    }
}

/* Adam's numbers, worked out once a chunk: the pass is bound by memory, but a division for each weight would show.
 * What the moments keep and take in (1 - keep would lose the digits of a decay near 1); root: 1/sqrt of the second
 * one's correction. */
typedef struct { float rate, keep_first, new_first, keep_second, new_second, small, root; } Adam;
#define ADAM                                                                                   \
    const Adam a = {rate[k] / first_left, keep_first, new_first, keep_second, new_second, small, \
                    1.0f / sqrtf(second_left)};

/* Kingma and Ba (2015): x -= rate m' / (sqrt(v') + small), m' and v' the moments without the zeros they began with. The
 * first one's correction is divided out of the rate, the second one's root is taken once: a multiplication is left. */
static void adam(int64_t count, Adam a, const float *restrict g, float *restrict x, float *restrict m,
                 float *restrict v) {
    for (int64_t i = 0; i < count; i++) {
        float mean = a.keep_first * m[i] + a.new_first * g[i];
        float square = a.keep_second * v[i] + a.new_second * g[i] * g[i];
        m[i] = mean;
        v[i] = square;
        x[i] -= a.rate * mean / (sqrtf(square) * a.root + a.small);
    }
}

/* How the gradient by the scale comes from what is given, and where the prior's slopes come from: nowhere, from one
 * centre and precision for all weights, from one of each a weight, or from a mixture of two Gaussians. The numbers are
 * those of ScalePullback and PriorGradientKind in doxa/flat. */
enum { GIVEN, TIMES_EPSILON, TIMES_TWICE_SCALE };
enum { NO_PRIOR, LINE, LINES, MIXTURE };

/* The gradients by mean and rho of a chunk, of the free energy a row. With g, f by the first leaf and what stands for
 * the scale's, weight = beta/N, and a Gaussian prior of centre c and precision t:
 *
 *     by mean = g + weight t (m - c)                    by rho = (turned f + weight (t s - 1/s)) ds/drho
 *
 * A mixture has no closed KL: its slope is taken at the draw m + s epsilon that the net ran on, and pulled back with g.
 * There P is the narrow one's share at a distance d of the centre,
 *
 *     -d log p/dw = d (wide + (narrow - wide) P),       P = sigmoid(-odds - (narrow - wide) d^2 / 2)
 *
 * a sigmoid of a log-ratio, where the densities themselves would both be zero far out. Turn and prior are constants to
 * whoever calls it, and it is always inlined: each pair becomes a loop of its own without a branch. */
static inline __attribute__((always_inline)) void slopes(
    const int turn, const int prior, int64_t count, float weight, const float *restrict about,
    const float *restrict centres, const float *restrict precisions, const float *restrict gradient,
    const float *restrict from, const float *restrict epsilon, const float *restrict mean, const float *restrict rho,
    float *restrict to_mean, float *restrict to_rho) {
    /* about: centre and precision of all weights; of a mixture centre, both precisions, log-odds of the wide one */
    const float centre = prior == LINE || prior == MIXTURE ? about[0] : 0.0f;
    const float wide = prior == LINE || prior == MIXTURE ? about[1] : 0.0f;
    const float gap = prior == MIXTURE ? about[2] - about[1] : 0.0f, odds = prior == MIXTURE ? about[3] : 0.0f;
    for (int64_t i = 0; i < count; i++) {
        float m = mean[i], r = within(rho[i]), by_mean = gradient[i];
        /* Scale and slope of the softplus share one exponential. */
        float t = expo(-fabsf(r)), s = (r > 0.0f ? r : 0.0f) + ln1p(t);
        float slope = (r > 0.0f ? 1.0f : t) / (1.0f + t); /* of the softplus */
        float pull = 0.0f;
        if (prior == MIXTURE) {
            float distance = m + s * epsilon[i] - centre;
            float narrow = sigmoid(-odds - 0.5f * gap * distance * distance);
            by_mean += weight * distance * (wide + gap * narrow);
        }
        float by_scale = turn == TIMES_EPSILON ? (prior == MIXTURE ? by_mean : from[i]) * epsilon[i]
                         : turn == TIMES_TWICE_SCALE ? 2.0f * s * from[i]
                                                     : from[i];
        if (prior == LINE) {
            pull = weight * wide;
            by_mean += pull * (m - centre);
        }
        if (prior == LINES) {
            pull = weight * precisions[i];
            by_mean += pull * (m - (centres ? centres[i] : 0.0f));
        }
        float by_rho = (by_scale + pull * s - weight / s) * slope; /* -1/s is the entropy's, whatever the prior */
        to_mean[i] = by_mean;
        to_rho[i] = by_rho;
    }
}

/* One switch a chunk instead of two questions a weight, at the price of ten copies of the loop (some kilobytes).
 * Every pair of a turn and a prior that there is: a mixture's slope needs the draw, which only epsilon gives back. */
#define EACH(GO)                                                                    \
    switch (4 * turn + prior) {                                                     \
        case 4 * GIVEN + NO_PRIOR: GO(GIVEN, NO_PRIOR); break;                      \
        case 4 * GIVEN + LINE: GO(GIVEN, LINE); break;                              \
        case 4 * GIVEN + LINES: GO(GIVEN, LINES); break;                            \
        case 4 * TIMES_EPSILON + NO_PRIOR: GO(TIMES_EPSILON, NO_PRIOR); break;      \
        case 4 * TIMES_EPSILON + LINE: GO(TIMES_EPSILON, LINE); break;              \
        case 4 * TIMES_EPSILON + LINES: GO(TIMES_EPSILON, LINES); break;            \
        case 4 * TIMES_EPSILON + MIXTURE: GO(TIMES_EPSILON, MIXTURE); break;        \
        case 4 * TIMES_TWICE_SCALE + NO_PRIOR: GO(TIMES_TWICE_SCALE, NO_PRIOR); break; \
        case 4 * TIMES_TWICE_SCALE + LINE: GO(TIMES_TWICE_SCALE, LINE); break;      \
        case 4 * TIMES_TWICE_SCALE + LINES: GO(TIMES_TWICE_SCALE, LINES); break;    \
    }
/* What both of the next two are called with, at the place of a chunk in each vector: rows of gradients, of means, of
 * rhos and of priors lie at strides of their own, as they are parts of larger matrices. */
#define INPUTS                                                                                             \
    weight[k], about + 4 * k, centres ? centres + c : 0, precisions ? precisions + c : 0,                  \
        gradient + k * gradient_stride + at, from + k * from_stride + at, noise
/* Behind a net's random weights its point estimates lie, in the mean but not in rho: two strides, p and q. */
#define PLACES                                                                                             \
    int64_t p = k * mean_stride + at, q = k * stride + at, c = k * prior_stride + at;                      \
    float room[CHUNK];                                                                                     \
    const float *noise = turn != TIMES_EPSILON ? 0                                                         \
                         : noise_of(epsilon ? epsilon + q : 0, seeds ? seeds + k : 0, high, group, part, sign, room);

/* One step of Adam on the mean and rho of every weight, from the gradient by the first leaf and what stands for the one
 * by the scale; the slopes of weight * KL are added on the way. An epsilon that was not kept is made again from number
 * `start` of the members' streams. A member whose rate is negative rests. */
void doxa_descend(int64_t members, int64_t n, int turn, int prior, const float *weight, const float *about,
                  int64_t prior_stride, const float *centres, const float *precisions, int64_t gradient_stride,
                  const float *gradient, int64_t from_stride, const float *from, int64_t mean_stride, int64_t stride,
                  const uint64_t *seeds, uint64_t high, int64_t start, float sign, const float *epsilon, float *mean,
                  float *rho, const float *rate, float keep_first, float new_first, float keep_second,
                  float new_second, float small, float first_left, float second_left, float *m1, float *v1, float *m2,
                  float *v2) {
    OVER_CHUNKS {
        CHUNK_OF
        if (rate[k] < 0.0f) continue; /* not a rate of zero: moments must stand still too, and NaN times 0 is NaN */
        PLACES
        ADAM
        float by_mean[CHUNK], by_rho[CHUNK]; /* they stay in the cache */
#define STEP(T, P) slopes(T, P, count, INPUTS, mean + p, rho + q, by_mean, by_rho)
        EACH(STEP)
        adam(count, a, by_mean, mean + p, m1 + p, v1 + p);
        adam(count, a, by_rho, rho + q, m2 + q, v2 + q);
    }
}

/* The gradients by mean and rho that the step above goes along, for other optimisers: SGD, Langevin, and torch's own,
 * which want them in memory. The same `slopes`, so that what Adam goes along and what others see cannot part. */
void doxa_slopes(int64_t members, int64_t n, int turn, int prior, const float *weight, const float *about,
                 int64_t prior_stride, const float *centres, const float *precisions, int64_t gradient_stride,
                 const float *gradient, int64_t from_stride, const float *from, int64_t mean_stride, int64_t stride,
                 const uint64_t *seeds, uint64_t high, int64_t start, float sign, const float *epsilon,
                 const float *mean, const float *rho, float *by_mean, float *by_rho) {
    OVER_CHUNKS {
        CHUNK_OF
        PLACES
#define KEEP(T, P) slopes(T, P, count, INPUTS, mean + p, rho + q, by_mean + p, by_rho + q)
        EACH(KEEP)
    }
}

/* One sample's gradients, written or added to those by mean and scale: with several samples a step there is one pass
 * for each, and the first one writes, which saves clearing. Softplus and KL wait until all are added up. */
void doxa_collect(int64_t members, int64_t n, int add, int turn, int64_t gradient_stride, const float *gradient,
                  int64_t from_stride, const float *from, const uint64_t *seeds, uint64_t high, int64_t start,
                  float sign, int64_t stride, const float *epsilon, const float *rho, int64_t sum_stride,
                  float *by_mean, float *by_scale) {
    OVER_CHUNKS {
        CHUNK_OF
        float room[CHUNK];
        const float *factor; /* not restrict: what it points at is written here */
        const float *restrict g = gradient + k * gradient_stride + at, *restrict f = from + k * from_stride + at;
        float *restrict to_mean = by_mean + k * sum_stride + at, *restrict to_scale = by_scale + k * sum_stride + at;
        if (turn == TIMES_TWICE_SCALE) {
            const float *restrict r = rho + k * stride + at;
            for (int64_t i = 0; i < count; i++) room[i] = 2.0f * softplus(r[i]);
            factor = room;
        } else {
            const float *kept = epsilon ? epsilon + k * stride + at : 0;
            factor = noise_of(kept, seeds ? seeds + k : 0, high, group, part, sign, room);
        }
        if (add)
            for (int64_t i = 0; i < count; i++) { to_mean[i] += g[i]; to_scale[i] += f[i] * factor[i]; }
        else
            for (int64_t i = 0; i < count; i++) { to_mean[i] = g[i]; to_scale[i] = f[i] * factor[i]; }
    }
}

/* One step of Adam on any vector whose gradient is there: point estimates, means and rhos whose prior or noise has no
 * pass of its own, and several draws a step, whose gradients doxa_collect has added up. */
void doxa_adam(int64_t members, int64_t n, const float *rate, float keep_first, float new_first, float keep_second,
               float new_second, float small, float first_left, float second_left, int64_t gradient_stride,
               const float *gradient, int64_t stride, float *x, float *m, float *v) {
    const int64_t start = 0;
    OVER_CHUNKS {
        CHUNK_OF
        if (rate[k] < 0.0f) continue;
        ADAM
        int64_t p = k * stride + at;
        adam(count, a, gradient + k * gradient_stride + at, x + p, m + p, v + p);
    }
}

/* For noise with a rule and for steps of several passes, which do not ask the prior in the step above:
 * slope = d log p(w)/dw for a mixture of two Gaussians of the given precisions; odds = log of the wide one's share and
 * scale over the narrow one's. */
void doxa_mixture_slope(int64_t n, float centre, float wide, float narrow, float odds, const float *restrict w,
                        float *restrict slope) {
    float gap = narrow - wide;
    _Pragma("omp parallel for simd schedule(static) if (parallel : n > THREADS_PAY)")
    for (int64_t i = 0; i < n; i++) {
        float distance = w[i] - centre;
        float idle = sigmoid(-odds - 0.5f * gap * distance * distance); /* the share of the narrow one */
        slope[i] = -distance * (wide + gap * idle);
    }
}
