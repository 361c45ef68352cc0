/* Passes over flat vectors of float32, each once through memory: what a training step does besides running the net.
 *
 * Written so that a compiler turns every loop over LANES into vector instructions; no libm call, no branch inside.
 * doxa/flat.py states each pass in torch; tests hold the two equal to rounding.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "rounding tricks below need the sums as they are written"
#endif

#define LANES 256
#define GROUP (4 * LANES)
#define FAR 80.0f
#define THREADS_PAY 32768

static inline float as_float(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline uint32_t as_bits(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }

/* Natural logarithm of a positive normal number. */
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

/* exp(x) for |x| up to 87. */
static inline float expo(float x) {
    float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f; /* rounds to a whole number */
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 0.00139505f;
    p = p * r + 0.00836888f;
    p = p * r + 0.04166621f;
    p = p * r + 0.16666519f;
    p = p * r + 0.50000001f;
    return (1.0f + (r + r * r * p)) * as_float((uint32_t)((int32_t)n + 127) << 23);
}

/* log(1 + y) for y from 0 to 1, to a small relative error: 2 atanh(y / (2 + y)). */
static inline float ln1p(float y) {
    float s = y / (2.0f + y), q = s * s;
    float p = 0.14012233f;
    p = p * q + 0.1399957f;
    p = p * q + 0.2001085f;
    p = p * q + 0.33333207f;
    return 2.0f * (s + s * q * p);
}

static inline float within(float x) { return x < -FAR ? -FAR : (x > FAR ? FAR : x); }

static inline float softplus(float rho) {
    float x = within(rho);
    return (x > 0.0f ? x : 0.0f) + ln1p(expo(-fabsf(x)));
}

static inline float sigmoid(float x) { return 1.0f / (1.0f + expo(-within(x))); }

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

/* Philox4x32-10 at LANES counters, the words of each in four rows. */
static void philox(uint64_t key, uint64_t group, uint32_t *restrict words) {
    uint32_t first = (uint32_t)(group * LANES), high = (uint32_t)(group * LANES >> 32);
    for (int i = 0; i < LANES; i++) {
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32), a = first + (uint32_t)i, b = high, c = 0, d = 0;
        ROUND ROUND ROUND ROUND ROUND ROUND ROUND ROUND ROUND ROUND
        words[i] = a;
        words[LANES + i] = b;
        words[2 * LANES + i] = c;
        words[3 * LANES + i] = d;
    }
}

/* Box and Muller: a row of radii and a row of angles into two rows of normal numbers. */
static void box_muller(const uint32_t *restrict words, float *restrict z) {
    for (int i = 0; i < LANES; i++) {
        float u = ((float)(int32_t)(words[i] >> 1) + 0.5f) * 0x1p-31f;
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

static void normal_group(uint64_t key, int64_t group, float *restrict z) {
    uint32_t words[GROUP];
    philox(key, (uint64_t)group, words);
    box_muller(words, z);
    box_muller(words + 2 * LANES, z + 2 * LANES);
}

/* The part of a group that lies in [start, start + n): where it begins in the group, in the vector, and its length. */
typedef struct { int64_t inside, at, count; } Overlap;

static inline Overlap overlap(int64_t group, int64_t start, int64_t n) {
    int64_t low = group * GROUP < start ? start : group * GROUP;
    int64_t high = (group + 1) * GROUP < start + n ? (group + 1) * GROUP : start + n;
    Overlap part = {low - group * GROUP, low - start, high - low};
    return part;
}

#define OVER_GROUPS                                                                \
    int64_t first_group = start / GROUP, last_group = (start + n + GROUP - 1) / GROUP; \
    _Pragma("omp parallel for schedule(static) if (n > THREADS_PAY)")              \
    for (int64_t group = first_group; group < last_group; group++)

/* Numbers start to start + n of the key's stream, times sign. */
void doxa_normals(uint64_t key, int64_t start, int64_t n, float sign, float *out) {
    OVER_GROUPS {
        float z[GROUP];
        Overlap part = overlap(group, start, n);
        normal_group(key, group, z);
        const float *restrict from = z + part.inside;
        float *restrict to = out + part.at;
        for (int64_t i = 0; i < part.count; i++) to[i] = sign * from[i];
    }
}

/* epsilon = sign * normals, w = mean + scale * epsilon; before it scale = softplus(rho) where rho is given. */
void doxa_draw(uint64_t key, int64_t start, int64_t n, float sign, const float *mean, const float *rho, float *scale,
               float *epsilon, float *w) {
    OVER_GROUPS {
        float z[GROUP];
        Overlap part = overlap(group, start, n);
        normal_group(key, group, z);
        const float *restrict from = z + part.inside, *restrict m = mean + part.at;
        float *restrict s = scale + part.at, *restrict e = epsilon + part.at, *restrict to = w + part.at;
        if (rho) {
            const float *restrict r = rho + part.at;
            for (int64_t i = 0; i < part.count; i++) s[i] = softplus(r[i]);
        }
        for (int64_t i = 0; i < part.count; i++) {
            float noise = sign * from[i];
            e[i] = noise;
            to[i] = m[i] + s[i] * noise;
        }
    }
}

/* scale = softplus(rho) */
void doxa_fill_scale(int64_t n, const float *restrict rho, float *restrict scale) {
    _Pragma("omp parallel for simd schedule(static) if (parallel : n > THREADS_PAY)")
    for (int64_t i = 0; i < n; i++) scale[i] = softplus(rho[i]);
}

/* The gradients of a step, finished where they lie: weight times the slopes of
 * KL = precision/2 ((mean - centre)^2 + scale^2) - log scale is added, and scale turned into rho where rho is given.
 * Where by_rho still holds the draw's epsilon it is pulled back first. */
void doxa_finish(int64_t n, int holds_epsilon, float weight, float centre, float precision,
                 const float *restrict mean, const float *restrict scale, const float *restrict rho,
                 float *restrict by_mean, float *restrict by_rho) {
    float pull = weight * precision;
    _Pragma("omp parallel for simd schedule(static) if (parallel : n > THREADS_PAY)")
    for (int64_t i = 0; i < n; i++) {
        float g = by_mean[i], s = scale[i];
        float by_scale = by_rho[i] * (holds_epsilon ? g : 1.0f);
        by_rho[i] = (by_scale + pull * s - weight / s) * (rho ? sigmoid(rho[i]) : 1.0f);
        by_mean[i] = g + pull * (mean[i] - centre);
    }
}

/* slope = d log p(w)/dw for a mixture of two Gaussians of the given precisions; odds = log of the wide one's share and
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
