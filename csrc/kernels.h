/* Private to csrc: what a target offers, and the conditions under which a build computes rightly. */
#ifndef SPINSTAT_KERNELS_H
#define SPINSTAT_KERNELS_H

#include <float.h>

#include "moments.h"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || defined(_M_FP_FAST)
#error "spinstat counts NaN and infinities and keeps subnormals: build it without -ffast-math, -Ofast or /fp:fast"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 1 && FLT_EVAL_METHOD != 16
#error "spinstat gives the same bits on every target: it needs doubles evaluated as doubles (on x86, -mfpmath=sse)"
#endif
#if DBL_MANT_DIG != 53
#error "spinstat needs IEEE 754 binary64 doubles"
#endif

/* gcc and clang have types for vectors, and take a processor's features a function at a time. Everything outside these
 * guards is ISO C. SPIN_ISO_C leaves them out, so that what other compilers build can be tested here. */
#if defined(__GNUC__) && !defined(SPIN_ISO_C)
#define SPIN_GNU_C 1
#endif
#if defined(__x86_64__) && defined(SPIN_GNU_C)
#define SPIN_HAVE_X86_TARGETS 1
#endif

/* Independent sums kept side by side. The number fixes the order of the additions and so every bit of a result: it is
 * part of the format, not a tuning knob. The width of the vectors that carry them is the target's own affair. */
#define SPIN_LANES 16

/* Elements a kernel is given at a time: small enough for the first-level cache, where a second look costs little. */
#define SPIN_BLOCK 4096

/* What one pass over a block leaves: sums of (x - pivot) and (x - pivot)^2, and the extremes of x. */
typedef struct {
    double sum, sum_sq, min, max;
} spin_partial;

/* Add a step to the mean. What its rounding loses goes to mean_low, so that mean is the nearest double to both. */
void spin_mean_add(spin_moments *m, double step);

/* n from 1 to SPIN_BLOCK. Where x holds anything that is not finite, or a sum overflows, sum or sum_sq is not finite
 * and the rest is undefined. */
typedef void spin_kernel(spin_partial *out, const void *x, int64_t n, double pivot);

typedef struct {
    const char *name;
    int (*supported)(void);
    spin_kernel *kernel[SPIN_DTYPES];
} spin_target;

/* The row of the table in use. */
const spin_target *spin_target_row(void);

extern spin_kernel baseline_float64_spin, baseline_float32_spin, baseline_int64_spin, baseline_int32_spin;
#ifdef SPIN_HAVE_X86_TARGETS
extern spin_kernel x86_v3_float64_spin, x86_v3_float32_spin, x86_v3_int64_spin, x86_v3_int32_spin;
extern spin_kernel x86_v4_float64_spin, x86_v4_int64_spin;
#endif

#endif
