/* The bulk reduction: every length from 0 to three blocks and every alignment, on every target, to the bit.
 *
 * Prints what fails and, last, "N passed, N failed"; exits with 1 where anything failed. */
#include "check.h"

#define LONGEST (3 * BLOCK + 1)

#ifndef STEP /* between lengths above 300; slow builds take a greater one, a prime */
#define STEP 1
#endif

/* Integers between two guards of NaN (or of a huge integer): whatever is read beyond the ends shows. */
static union {
    double f64[LONGEST + 3 * LANES];
    float f32[LONGEST + 3 * LANES];
    int64_t i64[LONGEST + 3 * LANES];
    int32_t i32[LONGEST + 3 * LANES];
} data;
static int64_t values[LONGEST];

static const void *fill(spin_dtype dtype, int64_t start, int64_t n, int64_t offset)
{
    for (int64_t i = 0; i < LONGEST + 3 * LANES; i++) {
        const int inside = i >= start && i < start + n;
        const int64_t v = inside ? values[i - start] + offset : INT32_MAX;
        switch (dtype) {
        case SPIN_FLOAT64:
            data.f64[i] = inside ? (double)v : (double)NAN;
            break;
        case SPIN_FLOAT32:
            data.f32[i] = inside ? (float)v : NAN;
            break;
        case SPIN_INT64:
            data.i64[i] = v;
            break;
        default:
            data.i32[i] = (int32_t)v;
        }
    }
    switch (dtype) {
    case SPIN_FLOAT64:
        return data.f64 + start;
    case SPIN_FLOAT32:
        return data.f32 + start;
    case SPIN_INT64:
        return data.i64 + start;
    default:
        return data.i32 + start;
    }
}

/* Against sums in integers, which are exact: values lie within 1000 of the offset. */
static void check_state(const spin_moments *m, int64_t n, int64_t offset, const char *what, int dtype)
{
    int64_t sum = 0, squares = 0, low = n ? values[0] : 0, high = low;
    for (int64_t i = 0; i < n; i++) {
        sum += values[i];
        squares += values[i] * values[i];
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    const double count = (double)n, center = (double)offset, merges = 3.0;
    const double mean = n ? (double)sum / count : 0.0;
    const double m2 = n ? (double)(n * squares - sum * sum) / count : 0.0;
    const double rows = BLOCK / LANES + 4; /* additions that a value meets in its block */
    const double spread = (double)(high - low), top = fabs(center) + 1000.0;
    const double error = (rows + 8.0 + 4.0 * merges) * U * spread + (2.0 + merges) * U * top;
    check(m->count == n && spin_moments_count(m) == n, "%s type %d n %lld: count", what, dtype, (long long)n);
    check(near(sqrt(m->m2), sqrt(m2), 4.0 * rows * U * sqrt(m2) + sqrt(count) * 16.0 * U * top),
          "%s type %d n %lld: m2 %.17g, want %.17g", what, dtype, (long long)n, m->m2, m2);
    if (n) {
        check(near(m->mean - center, mean, error), "%s type %d n %lld: mean %.17g", what, dtype, (long long)n,
              m->mean);
        check(m->min == center + (double)low, "%s type %d n %lld: min %.17g", what, dtype, (long long)n,
              m->min);
        check(m->max == center + (double)high, "%s type %d n %lld: max %.17g", what, dtype, (long long)n,
              m->max);
    }
}

static void every_length_on_every_target(void)
{
    static const int64_t offsets[SPIN_DTYPES][2] = {
        {0, 1000000000000000}, {0, 4000000}, {0, 1000000000000000}, {0, 2000000000}};
    static spin_moments first[LONGEST + 1];
    for (int dtype = 0; dtype < SPIN_DTYPES; dtype++) {
        for (int o = 0; o < 2; o++) {
            int seen = 0;
            const void *x = fill((spin_dtype)dtype, 1, LONGEST, offsets[dtype][o]);
            for (size_t t = 0; spin_target_name(t) != NULL; t++) {
                if (spin_target_select(spin_target_name(t)) != 0) {
                    continue;
                }
                for (int64_t n = 0; n <= LONGEST; n += n < 300 ? 1 : STEP) {
                    spin_moments m;
                    spin_moments_init(&m);
                    spin_moments_reduce(&m, x, n, (spin_dtype)dtype);
                    if (seen) {
                        check(same(&m, &first[n]), "%s type %d n %lld: bits", spin_target_name(t), dtype,
                              (long long)n);
                        continue;
                    }
                    check_state(&m, n, offsets[dtype][o], spin_target_name(t), dtype);
                    first[n] = m;
                }
                seen = 1;
            }
        }
    }
    check(spin_target_select(NULL) == 0, "no target at all");
}

static void every_alignment_gives_the_same_bits(void)
{
    for (int dtype = 0; dtype < SPIN_DTYPES; dtype++) {
        for (int64_t n = 1; n <= 100; n++) {
            spin_moments first = of(NULL, 0);
            for (int64_t start = 0; start < 2 * LANES; start++) {
                spin_moments m;
                const void *x = fill((spin_dtype)dtype, start, n, 0);
                spin_moments_init(&m);
                spin_moments_reduce(&m, x, n, (spin_dtype)dtype);
                first = start ? first : m;
                check(same(&m, &first), "type %d n %lld start %lld: bits", dtype, (long long)n,
                      (long long)start);
            }
            check_state(&first, n, 0, "guarded", dtype);
        }
    }
}

/* Fractions, whose products are rounded, and integers of all 64 bits: a kernel that contracts a * b + c, adds
 * in another order or converts in another way shows. */
static void every_target_rounds_alike(void)
{
    static double f64[LONGEST];
    static float f32[LONGEST];
    static int64_t i64[LONGEST];
    static int32_t i32[LONGEST];
    const void *const x[SPIN_DTYPES] = {f64, f32, i64, i32};
    spin_moments first[SPIN_DTYPES], m;

    for (int64_t n = 1; n <= LONGEST; n += n < 100 ? 1 : 97) {
        for (int64_t i = 0; i < n; i++) {
            const uint64_t bits = next();
            f64[i] = uniform() * (i % 7 ? 1.0 : -1e6);
            f32[i] = (float)f64[i];
            i64[i] = (int64_t)(bits >> 1) >> (bits % 63);
            i64[i] = i % 3 ? i64[i] : -i64[i] - 1;
            i32[i] = (int32_t)(i64[i] >> 32);
        }
        int seen = 0;
        for (size_t t = 0; spin_target_name(t) != NULL; t++) {
            if (spin_target_select(spin_target_name(t)) != 0) {
                continue;
            }
            for (int k = 0; k < SPIN_DTYPES; k++) {
                m = of(NULL, 0);
                spin_moments_reduce(&m, x[k], n, (spin_dtype)k);
                first[k] = seen ? first[k] : m;
                check(same(&m, &first[k]), "%s type %d n %lld: rounding", spin_target_name(t), k,
                      (long long)n);
            }
            seen = 1;
        }
    }
    check(spin_target_select(NULL) == 0, "no target at all");
}

/* One integer at a time: its mean is the double that the language makes of it. */
static void every_target_converts_integers_alike(void)
{
    static const int64_t edges[] = {0, 1, INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 52,
                                    INT64_C(1) << 53, INT64_C(1) << 54, INT64_C(1) << 62, INT64_MAX};
    int64_t row[LANES];
    for (size_t t = 0; spin_target_name(t) != NULL; t++) {
        if (spin_target_select(spin_target_name(t)) != 0) {
            continue;
        }
        for (int i = 0; i < 20000; i++) {
            const int64_t far = (int64_t)(next() >> 1) >> (next() % 63);
            const int64_t edge = edges[next() % 9], step = (int64_t)(next() % 5);
            const int64_t near_edge = edge > 4 ? edge - step : edge + step;
            const int64_t v = (i % 2 ? far : near_edge) * (i % 4 < 2 ? 1 : -1);
            for (int l = 0; l < LANES; l++) {
                row[l] = v;
            }
            spin_moments m = of(NULL, 0);
            spin_moments_reduce(&m, row, LANES, SPIN_INT64);
            const double d = (double)v;
            check(m.mean == d && m.m2 == 0.0 && m.min == d && m.max == d, "%s: %lld", spin_target_name(t),
                  (long long)v);
        }
    }
    check(spin_target_select(NULL) == 0, "no target at all");
}

static void targets_are_listed_and_refused(void)
{
    size_t t = 0;
    for (; spin_target_name(t) != NULL; t++) {
        const int answer = spin_target_select(spin_target_name(t));
        check(answer == (spin_target_supported(t) ? 0 : -2), "%s: %d", spin_target_name(t), answer);
        check(answer != 0 || strcmp(spin_target_current(), spin_target_name(t)) == 0, "%s is not current",
              spin_target_name(t));
        printf("target %s: %s\n", spin_target_name(t), answer ? "not on this processor" : "runs");
    }
    check(t > 0 && !spin_target_supported(t) && spin_target_supported(t - 1), "the last one runs everywhere");
    const char *before = spin_target_current();
    check(spin_target_select("no such target") == -1 && spin_target_current() == before, "an unknown name");
    check(spin_target_select("") == -1, "nor does an empty one");
    check(spin_target_select(NULL) == 0, "NULL takes the best");
}

int main(void)
{
    for (int64_t i = 0; i < LONGEST; i++) {
        values[i] = (int64_t)(next() % 2001) - 1000;
    }
    targets_are_listed_and_refused();
    every_length_on_every_target();
    every_target_rounds_alike();
    every_target_converts_integers_alike();
    every_alignment_gives_the_same_bits();
    return report();
}
