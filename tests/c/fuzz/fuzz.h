/* What the fuzzers share: the input as a stream of numbers, a check that ends the process, an exact enough oracle. */
#ifndef FUZZ_H
#define FUZZ_H

#include "kernels.h" /* the size of a block and the number of lanes: what the bounds are made of */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

typedef struct {
    const uint8_t *at;
    size_t left;
} input;

/* Ends the process as a found fault; libFuzzer then writes the input to a file. */
#define CHECK(ok, ...)                                                                                              \
    do {                                                                                                            \
        if (!(ok)) {                                                                                                \
            fprintf(stderr, "line %d: ", __LINE__);                                                                 \
            fprintf(stderr, __VA_ARGS__);                                                                           \
            fprintf(stderr, "\n");                                                                                  \
            abort();                                                                                                \
        }                                                                                                           \
    } while (0)

/* The next two bytes as a number below `end`; 0 where the input has ended. */
static inline int take(input *in, int end)
{
    unsigned value = 0;
    for (int i = 0; i < 2 && in->left > 0; i++, in->at++, in->left--) {
        value = value << 8 | *in->at;
    }
    return (int)(value % (unsigned)end);
}

static inline int same(const spin_moments *a, const spin_moments *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Moments of doubles in extended precision: three passes, with exponents that no double exceeds. */
typedef struct {
    int64_t count, nan_count, posinf_count, neginf_count;
    long double mean, m2, min, max;
} oracle;

static inline oracle exactly(const double *x, int64_t n)
{
    oracle o = {0, 0, 0, 0, 0.0L, 0.0L, (long double)INFINITY, -(long double)INFINITY};
    long double sum = 0.0L;
    for (int64_t i = 0; i < n; i++) {
        o.nan_count += isnan(x[i]) != 0;
        o.posinf_count += isinf(x[i]) && x[i] > 0;
        o.neginf_count += isinf(x[i]) && x[i] < 0;
        if (isfinite(x[i])) {
            o.count++;
            sum += x[i];
            o.min = x[i] < o.min ? x[i] : o.min;
            o.max = x[i] > o.max ? x[i] : o.max;
        }
    }
    const long double about = o.count ? sum / o.count : 0.0L; /* off by what a sum of many large numbers loses */
    long double off = 0.0L;
    for (int64_t i = 0; i < n; i++) {
        off += isfinite(x[i]) ? x[i] - about : 0.0L;
    }
    off = o.count ? off / o.count : 0.0L;
    o.mean = about + off;
    for (int64_t i = 0; i < n; i++) {
        o.m2 += isfinite(x[i]) ? ((x[i] - about) - off) * ((x[i] - about) - off) : 0.0L;
    }
    return o;
}

/* Counts and extremes exactly; the mean everywhere; m2 in the range that moments.h promises. `merges` is how many
 * states were merged one after the other. */
static inline void check_state(const spin_moments *m, const oracle *o, int merges, const char *what)
{
    const long double u = 0x1p-53L, rows = SPIN_BLOCK / SPIN_LANES + 4;
    CHECK(m->count == o->count && m->nan_count == o->nan_count && m->posinf_count == o->posinf_count &&
              m->neginf_count == o->neginf_count,
          "%s: counts", what);
    if (o->count == 0) {
        CHECK(m->mean == 0.0 && m->m2 == 0.0 && m->min > m->max, "%s: of nothing finite", what);
        return;
    }
    const long double spread = o->max - o->min, top = fmaxl(fabsl(o->max), fabsl(o->min));
    const long double error = (rows + 8 + 4 * merges) * u * spread + (2 + merges) * u * top + 64 * 0x1p-1074L;
    CHECK(m->min == o->min && m->max == o->max, "%s: extremes %.17g %.17g", what, m->min, m->max);
    CHECK(fabsl(m->mean - o->mean) <= error, "%s: mean %.17g, want %.21Lg", what, m->mean, o->mean);
    CHECK(m->m2 >= 0.0, "%s: m2 %.17g", what, m->m2);
    CHECK(spread > 0.0L || m->m2 == 0.0 || merges > 0, "%s: m2 %.17g of equal values", what, m->m2);
    if (spread >= 0x1p-500L && spread <= 0x1p+500L) {
        /* of the spread, not of the values: the mean's second double is what makes the difference */
        const long double want = sqrtl(o->m2);
        const long double bound = 4 * rows * u * want + sqrtl(o->count) * (16 + merges) * u * (spread + u * top);
        CHECK(fabsl(sqrtl(m->m2) - want) <= bound, "%s: m2 %.17g, want %.21Lg", what, m->m2, o->m2);
    }
}

#endif
