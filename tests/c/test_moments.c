/* The state: one value at a time, merge and its laws, readers, the tree, the largest doubles.
 *
 * Prints what fails and, last, "N passed, N failed"; exits with 1 where anything failed. */
#include "check.h"

#include <float.h>

#define LONGEST (3 * BLOCK + 1)

static spin_moments one(double x)
{
    return of(&x, 1);
}

static void one_value_at_a_time(void)
{
    spin_moments m = of(NULL, 0);
    int64_t sum = 0, squares = 0; /* exact */
    for (int64_t n = 1; n < LONGEST; n++) {
        const int64_t x = (int64_t)(next() % 2001) - 1000;
        spin_moments_update(&m, (double)x);
        sum += x;
        squares += x * x;
        const double mean = (double)sum / (double)n, m2 = (double)(n * squares - sum * sum) / (double)n;
        check(m.count == n, "n %lld: count", (long long)n);
        check(near(m.mean, mean, 8 * (double)n * U * 1000), "n %lld: mean %.17g", (long long)n, m.mean);
        check(near(m.m2, m2, 8 * (double)n * U * m2), "n %lld: m2 %.17g, want %.17g", (long long)n, m.m2, m2);
    }
}

static void merge_keeps_its_laws(void)
{
    const spin_moments empty = of(NULL, 0), nan = one((double)NAN);
    double x[300];
    for (int i = 0; i < 300; i++) {
        x[i] = 8000.0 * uniform() - 4000.0;
    }
    spin_moments ab = empty;
    spin_moments_merge(&ab, &empty);
    check(same(&ab, &empty), "empty and empty");
    ab = nan;
    spin_moments_merge(&ab, &nan);
    check(ab.nan_count == 2 && ab.count == 0 && ab.mean == 0.0, "nan and nan");
    for (int cut = 0; cut <= 300; cut++) {
        const spin_moments a = of(x, cut), b = of(x + cut, 300 - cut), all = of(x, 300);
        spin_moments ba = b, left = a, right = empty;
        ab = a;
        spin_moments_merge(&ab, &b);
        spin_moments_merge(&ba, &a);
        check(ab.count == 300 && ab.min == all.min && ab.max == all.max, "cut %d: exact parts", cut);
        check(near(ab.mean, all.mean, 64 * U * 4096), "cut %d: mean %.17g", cut, ab.mean);
        check(near(ab.m2, all.m2, 512 * U * all.m2), "cut %d: m2 %.17g", cut, ab.m2);
        check(near(ab.mean, ba.mean, 8 * U * 4096), "cut %d: mean in the other order", cut);
        check(near(ab.m2, ba.m2, 16 * U * ab.m2), "cut %d: m2 in the other order", cut);
        spin_moments_merge(&left, &empty);
        spin_moments_merge(&right, &a);
        check(same(&left, &a) && same(&right, &a), "cut %d: empty is the identity", cut);
        spin_moments_merge(&left, &left);
        check(left.count == 2 * a.count && left.mean == a.mean && left.m2 == 2 * a.m2, "cut %d: itself", cut);
    }
    /* counts whose product is no int64 */
    spin_moments p = {INT64_C(1) << 40, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0};
    const spin_moments q = {INT64_C(1) << 40, 1.0, 0.0, 0.0, 1.0, 1.0, 1, 2, 3};
    spin_moments_merge(&p, &q);
    check(p.count == INT64_C(1) << 41, "2^40 and 2^40: count");
    check(p.mean == 0.5 && p.m2 == 0x1p39, "2^40 and 2^40: %.17g %.17g", p.mean, p.m2);
    check(p.nan_count == 1 && p.posinf_count == 2 && p.neginf_count == 3, "non-finite counts add");
}

static int is(double found, double want)
{
    return isnan(want) ? isnan(found) : found == want;
}

static void readers_put_the_non_finite_back(void)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    const struct {
        int n;
        double x[3], mean, std, min, max;
    } table[] = {
        {0, {0}, nan, nan, nan, nan},
        {1, {5}, 5, 0, 5, 5},
        {1, {inf}, inf, nan, inf, inf},
        {3, {1, nan, 3}, nan, nan, nan, nan},
        {3, {1, inf, 3}, inf, nan, 1, inf},
        {2, {inf, inf}, inf, nan, inf, inf},
        {3, {-inf, 2, 3}, -inf, nan, -inf, 3},
        {2, {inf, -inf}, nan, nan, -inf, inf},
        {2, {inf, nan}, nan, nan, nan, nan},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const spin_moments m = of(table[i].x, table[i].n);
        check(spin_moments_count(&m) == table[i].n, "row %zu: count", i);
        check(is(spin_moments_mean(&m), table[i].mean), "row %zu: mean", i);
        check(is(spin_moments_std(&m, 0), table[i].std), "row %zu: std", i);
        check(is(spin_moments_min(&m), table[i].min), "row %zu: min", i);
        check(is(spin_moments_max(&m), table[i].max), "row %zu: max", i);
    }
    const double x[] = {1, 2, 4, 5};
    const spin_moments m = of(x, 4);
    check(m.m2 == 10 && spin_moments_variance(&m, 0) == 2.5 && spin_moments_variance(&m, 2) == 5, "ddof");
    check(is(spin_moments_variance(&m, 4), nan) && is(spin_moments_std(&m, 5), nan), "ddof from count on");
    check(is(spin_moments_variance(&m, inf), nan) && is(spin_moments_variance(&m, nan), nan), "odd ddof");
}

static void largest_doubles_do_not_overflow_the_mean(void)
{
    static double x[LONGEST];
    for (int64_t n = 1; n <= LONGEST; n += n < 40 ? 1 : 331) {
        spin_moments by_one = of(NULL, 0);
        for (int64_t i = 0; i < n; i++) {
            x[i] = i % 2 ? -DBL_MAX : DBL_MAX;
            spin_moments_update(&by_one, x[i]);
        }
        const spin_moments mixed = of(x, n);
        const double want = n % 2 ? DBL_MAX / (double)n : 0.0;
        check(near(mixed.mean, want, 4096 * U * DBL_MAX), "n %lld: mean %.17g", (long long)n, mixed.mean);
        check(near(by_one.mean, want, (double)n * 16 * U * DBL_MAX), "n %lld: update %.17g", (long long)n,
              by_one.mean);
        check(mixed.m2 == (n == 1 ? 0 : (double)INFINITY), "n %lld: m2 %.17g", (long long)n, mixed.m2);
        for (int64_t i = 0; i < n; i++) {
            x[i] = DBL_MAX;
        }
        spin_moments top = of(x, n), other = one(-DBL_MAX);
        check(top.mean == DBL_MAX && top.m2 == 0.0, "n %lld: constant mean %.17g", (long long)n, top.mean);
        spin_moments_merge(&top, &other);
        check(near(top.mean / DBL_MAX, (double)(n - 1) / (double)(n + 1), 8 * U), "n %lld: merge",
              (long long)n);
    }
}

/* The sum of these is a double, that of their squares is not. */
static void squares_that_overflow_leave_the_mean(void)
{
    static double x[BLOCK];
    const double inf = (double)INFINITY;
    for (int64_t n = 3; n <= BLOCK; n += n < 40 ? 1 : 331) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = (double)(i % 3) * 1e200;
        }
        const spin_moments m = of(x, n);
        const double thirds = (double)(n / 3 * 3 + (n % 3 == 2)); /* the sum in units of 1e200 */
        check(near(m.mean / 1e200, thirds / (double)n, 300 * U), "n %lld: mean %.17g", (long long)n, m.mean);
        check(m.m2 == inf && m.min == 0.0 && m.max == 2e200 && m.count == n, "n %lld: the rest", (long long)n);
    }
}

static void largest_doubles_beside_the_non_finite_keep_their_mean(void)
{
    static double x[BLOCK];
    const double others[] = {(double)NAN, (double)INFINITY, (double)-INFINITY};
    for (int64_t n = 4; n <= BLOCK; n += n < 40 ? 4 : 332) { /* a quarter each: what is not finite, and 1 : 2 */
        int64_t not_finite[3] = {0};
        for (int64_t i = 0; i < n; i++) {
            x[i] = i % 4 ? (i % 4 == 1 ? -DBL_MAX : DBL_MAX) : others[i / 4 % 3];
            not_finite[i / 4 % 3] += i % 4 == 0;
        }
        const spin_moments m = of(x, n);
        check(m.count == n / 4 * 3 && spin_moments_count(&m) == n, "n %lld: count", (long long)n);
        check(m.nan_count == not_finite[0] && m.posinf_count == not_finite[1] && m.neginf_count == not_finite[2],
              "n %lld: those that are not finite", (long long)n);
        check(near(m.mean / DBL_MAX, 1.0 / 3.0, 300 * U), "n %lld: mean %.17g", (long long)n, m.mean);
        check(m.min == -DBL_MAX && m.max == DBL_MAX && m.m2 == (double)INFINITY, "n %lld: the rest", (long long)n);
    }
}

/* Values far from 0 and close together: blocks, parts of any length and single values, merged in a row. */
static void the_deviation_does_not_lose_digits_to_the_offset(void)
{
    static double x[37 * BLOCK];
    for (double offset = 1.0; offset < 1e16; offset *= 10.0) {
        const int64_t n = 37 * BLOCK;
        int64_t sum = 0, squares = 0; /* exact */
        spin_moments parts = of(NULL, 0), by_one = parts, backwards = parts;
        for (int64_t i = 0; i < n; i++) {
            const int64_t off = (int64_t)(next() % 7) - 2;
            x[i] = offset + (double)off;
            sum += off;
            squares += off * off;
        }
        for (int64_t i = 0, length = 1; i < n; i += length, length = (length * 3) % 5003) {
            length = length < n - i ? length : n - i;
            spin_moments part = of(x + i, length), late = part;
            spin_moments_merge(&parts, &part);
            spin_moments_merge(&late, &backwards);
            backwards = late;
        }
        for (int64_t i = 0; i < n; i++) {
            spin_moments_update(&by_one, x[i]);
        }
        const double m2 = ((double)n * (double)squares - (double)sum * (double)sum) / (double)n;
        const double mean = offset + (double)sum / (double)n;
        const struct {
            const char *name;
            spin_moments m;
        } ways[] = {{"whole", of(x, n)}, {"parts", parts}, {"parts, the last first", backwards}, {"one by one", by_one}};
        for (int way = 0; way < 4; way++) {
            const spin_moments *m = &ways[way].m;
            const double ulp = nextafter(mean, (double)INFINITY) - mean;
            check(m->mean == mean || near(m->mean, mean, ulp), "%g, %s: mean %.17g", offset, ways[way].name, m->mean);
            check(fabs(m->mean_low) <= ulp / 2, "%g, %s: low %.17g", offset, ways[way].name, m->mean_low);
            check(near((m->mean - offset) + m->mean_low, (double)sum / (double)n, 1e-14), "%g, %s: both parts", offset,
                  ways[way].name);
            check(near(m->m2, m2, (way < 3 ? 1e-14 : 1e-12) * m2), "%g, %s: m2 %.17g, want %.17g", offset,
                  ways[way].name, m->m2, m2);
        }
    }
}

static void a_tree_may_be_cut_at_powers_of_two(void)
{
    static double x[37 * BLOCK];
    for (int64_t i = 0; i < 37 * BLOCK; i++) {
        x[i] = uniform() + (double)i;
    }
    for (int64_t n = 1; n <= 37 * BLOCK; n += 1237) {
        const spin_moments whole = of(x, n);
        for (int64_t cut = BLOCK; cut <= 16 * BLOCK; cut *= 2) {
            spin_tree tree;
            spin_moments m = of(NULL, 0), part;
            spin_tree_init(&tree);
            spin_tree_fold(&tree, &m);
            check(m.count == 0, "an empty tree adds nothing");
            for (int64_t i = 0; i < n; i += cut) {
                part = of(x + i, n - i < cut ? n - i : cut);
                spin_tree_push(&tree, &part);
            }
            spin_tree_fold(&tree, &m);
            check(same(&m, &whole), "n %lld cut %lld: bits", (long long)n, (long long)cut);
        }
    }
    check(SPIN_CHUNK % BLOCK == 0 && ((SPIN_CHUNK / BLOCK) & (SPIN_CHUNK / BLOCK - 1)) == 0, "chunks");
}

int main(void)
{
    one_value_at_a_time();
    merge_keeps_its_laws();
    readers_put_the_non_finite_back();
    largest_doubles_do_not_overflow_the_mean();
    squares_that_overflow_leave_the_mean();
    largest_doubles_beside_the_non_finite_keep_their_mean();
    the_deviation_does_not_lose_digits_to_the_offset();
    a_tree_may_be_cut_at_powers_of_two();
    return report();
}
