/* What the test programs share: a counted check, and numbers that are the same everywhere. */
#ifndef CHECK_H
#define CHECK_H

#include "kernels.h" /* the size of a block and the number of lanes: what the bounds are made of */

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define U 0x1p-53

enum { BLOCK = SPIN_BLOCK, LANES = SPIN_LANES };

static long passed, failed;

/* Counts a passed check; a failed one is printed too, the first twenty. */
static inline void check(int ok, const char *format, ...)
{
    va_list args;
    if (ok) {
        passed++;
        return;
    }
    if (failed++ < 20) {
        va_start(args, format);
        printf("FAILED: ");
        vprintf(format, args);
        printf("\n");
        va_end(args);
    }
}

/* The last line of a program, and its exit status. */
static inline int report(void)
{
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed != 0;
}

static inline int same(const spin_moments *a, const spin_moments *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static inline int near(double found, double want, double error)
{
    return found == want || fabs(found - want) <= error;
}

/* Marsaglia's xorshift64. */
static inline uint64_t next(void)
{
    static uint64_t seed = 88172645463325252u;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static inline double uniform(void)
{
    return (double)(next() >> 11) * 0x1p-53;
}

static inline spin_moments of(const double *x, int64_t n)
{
    spin_moments m;
    spin_moments_init(&m);
    spin_moments_reduce(&m, x, n, SPIN_FLOAT64);
    return m;
}

#endif
