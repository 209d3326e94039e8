/* Moments of a stream of numbers: the struct, and everything that may be done with it.
 *
 * Assumes IEEE 754 binary64, round to nearest, no contraction of a*b+c and no fast-math; kernels.h refuses a build
 * that would break this. Functions are total: every input has an answer, nothing allocates, nothing can fail.
 *
 * Limits: up to 2^53 values a state (beyond, counts still add but the weights in merge are rounded). The mean is right
 * for every finite input; the standard deviation for spreads s from 2^-500 to 2^500 as long as count * s^2 is below
 * 2^1023 (2^485 for 2^53 values); outside it is 0 or infinite.
 *
 * Sources: Welford, Technometrics 4 (1962) for one value; Chan, Golub and LeVeque, The American Statistician 37 (1983)
 * for the merge of two sets; Pebay, SAND2008-6212 (2008) for the delta form of both; Dekker, Numerische Mathematik 18
 * (1971) for what a sum of two doubles loses.
 */
#ifndef SPINSTAT_MOMENTS_H
#define SPINSTAT_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Plain data, copied by assignment. Non-finite values are counted and never added, so no order of arrival can change
 * what they do; the readers below put them back.
 *
 * The mean is kept in two doubles. States are merged by the distance of their means, and where the values lie far from
 * 0 and close together, a mean rounded to one double leaves that distance few digits: of the standard deviation of
 * two blocks around 1e9 with a spread of 1, ten would be right. */
typedef struct {
    int64_t count;         /* finite values seen */
    double mean;           /* of the finite values; 0 when count is 0 */
    double mean_low;       /* what mean lacks; at most half a unit in its last place */
    double m2;             /* sum of (x - mean)^2 over the finite values; never negative; 0 when count is 0 */
    double min, max;       /* of the finite values; +inf and -inf when count is 0 */
    int64_t nan_count;
    int64_t posinf_count;
    int64_t neginf_count;
} spin_moments;

/* Element types with a kernel of their own. */
typedef enum {
    SPIN_FLOAT64 = 0,
    SPIN_FLOAT32 = 1,
    SPIN_INT64 = 2,
    SPIN_INT32 = 3,
    SPIN_DTYPES = 4
} spin_dtype;

/* The empty state, the identity of merge. */
void spin_moments_init(spin_moments *m);

/* Add one value (Welford). */
void spin_moments_update(spin_moments *m, double x);

/* Make dst the state of both sets together (Chan). dst may be src: the set is then counted twice. An empty side
 * leaves the other one as it is, to the bit. Commutative and associative up to rounding; exact in the counts, min
 * and max. Means near the largest double merge without overflow. */
void spin_moments_merge(spin_moments *dst, const spin_moments *src);

/* Add n contiguous, aligned elements of one type. The same bits on every target (see dispatch). n <= 0 adds
 * nothing. */
void spin_moments_reduce(spin_moments *m, const void *data, int64_t n, spin_dtype dtype);

/* Readers. Count is of all values, non-finite ones included. Any NaN, or infinities of both signs: mean and std are
 * NaN. Infinities of one sign: mean is that infinity, std NaN. min and max take infinities in and are NaN with any
 * NaN. Empty: NaN for all four. The divisor of the variance is count - ddof; where that is not positive: NaN. */
int64_t spin_moments_count(const spin_moments *m);
double spin_moments_mean(const spin_moments *m);
double spin_moments_variance(const spin_moments *m, double ddof);
double spin_moments_std(const spin_moments *m, double ddof);
double spin_moments_min(const spin_moments *m);
double spin_moments_max(const spin_moments *m);

/* A reduction in parts: states pushed in order are merged as a binary counter, so the rounding error grows with the
 * logarithm of their number, and cutting the sequence at multiples of a power of two leaves every bit the same. */
typedef struct {
    uint64_t pushed;
    spin_moments level[64];
} spin_tree;

void spin_tree_init(spin_tree *t);
void spin_tree_push(spin_tree *t, const spin_moments *m);
void spin_tree_fold(const spin_tree *t, spin_moments *m); /* merges all that was pushed into m */

/* Elements in one chunk of a threaded reduction: a whole power-of-two number of kernel blocks. */
#define SPIN_CHUNK ((int64_t)1 << 20)

/* The kernels in use. spin_target_select(NULL) takes the best that the processor has; a name forces one. Returns 0,
 * -1 where no target of this build has that name, -2 where the processor cannot run it. Not to be called while
 * another thread reduces. spin_target_name(i) lists this build's targets, best first, NULL after the last. */
int spin_target_select(const char *name);
const char *spin_target_current(void);
const char *spin_target_name(size_t i);
int spin_target_supported(size_t i);

#ifdef __cplusplus
}
#endif
#endif
