/* The state: one value, two states, what readers see. The bulk is in reduce.c. See moments.h for what holds. */
#include "kernels.h"

#include <math.h>

static const spin_moments empty = {0, 0.0, 0.0, 0.0, (double)INFINITY, (double)-INFINITY, 0, 0, 0};

void spin_moments_init(spin_moments *m)
{
    *m = empty;
}

/* The sum of two doubles, rounded, and in *low what the rounding lost, which is a double (Dekker). */
static double two_sum(double a, double b, double *low)
{
    const double sum = a + b;
    *low = fabs(a) >= fabs(b) ? b - (sum - a) : a - (sum - b);
    return sum;
}

void spin_mean_add(spin_moments *m, double step)
{
    double low;
    const double mean = two_sum(m->mean, step, &low);
    m->mean = two_sum(mean, low + m->mean_low, &m->mean_low);
}

void spin_moments_update(spin_moments *m, double x)
{
    if (isnan(x)) {
        m->nan_count++;
        return;
    }
    if (isinf(x)) {
        if (x > 0) {
            m->posinf_count++;
        }
        else {
            m->neginf_count++;
        }
        return;
    }
    const double delta = (x - m->mean) - m->mean_low;
    if (m->count == 0 || !isfinite(delta)) {
        spin_moments one = empty;
        one.count = 1;
        one.mean = one.min = one.max = x;
        spin_moments_merge(m, &one);
        return;
    }
    m->count++;
    spin_mean_add(m, delta / (double)m->count);
    m->m2 += delta * ((x - m->mean) - m->mean_low);
    m->min = x < m->min ? x : m->min;
    m->max = x > m->max ? x : m->max;
}

void spin_moments_merge(spin_moments *dst, const spin_moments *src)
{
    const spin_moments a = *dst, b = *src; /* copies: dst may be src */
    spin_moments r;

    if (a.count == 0 || b.count == 0) {
        r = a.count == 0 ? b : a;
    }
    else {
        /* The lighter side moves the mean of the heavier one, where the correction is small and so is its error. */
        const int a_heavier = a.count >= b.count;
        const spin_moments *heavy = a_heavier ? &a : &b, *light = a_heavier ? &b : &a;
        const double n_heavy = (double)heavy->count, n_light = (double)light->count, n = n_heavy + n_light;
        const double delta = (light->mean - heavy->mean) + (light->mean_low - heavy->mean_low);
        r = *heavy;
        if (isfinite(delta)) {
            spin_mean_add(&r, delta * (n_light / n));
        }
        else { /* means of opposite sign near the largest double */
            r.mean = heavy->mean * (n_heavy / n) + light->mean * (n_light / n);
            r.mean_low = 0.0;
        }
        r.m2 = heavy->m2 + light->m2 + delta * delta * (n_heavy * (n_light / n));
        r.count = a.count + b.count;
        r.min = b.min < a.min ? b.min : a.min;
        r.max = b.max > a.max ? b.max : a.max;
    }
    r.nan_count = a.nan_count + b.nan_count;
    r.posinf_count = a.posinf_count + b.posinf_count;
    r.neginf_count = a.neginf_count + b.neginf_count;
    *dst = r;
}

int64_t spin_moments_count(const spin_moments *m)
{
    return m->count + m->nan_count + m->posinf_count + m->neginf_count;
}

double spin_moments_mean(const spin_moments *m)
{
    if (m->nan_count > 0 || (m->posinf_count > 0 && m->neginf_count > 0)) {
        return (double)NAN;
    }
    if (m->posinf_count > 0) {
        return (double)INFINITY;
    }
    if (m->neginf_count > 0) {
        return (double)-INFINITY;
    }
    return m->count > 0 ? m->mean : (double)NAN;
}

double spin_moments_variance(const spin_moments *m, double ddof)
{
    const double divisor = (double)m->count - ddof;
    if (m->count == 0 || m->nan_count > 0 || m->posinf_count > 0 || m->neginf_count > 0 || !(divisor > 0)) {
        return (double)NAN;
    }
    return m->m2 / divisor;
}

double spin_moments_std(const spin_moments *m, double ddof)
{
    return sqrt(spin_moments_variance(m, ddof));
}

double spin_moments_min(const spin_moments *m)
{
    if (m->nan_count > 0 || spin_moments_count(m) == 0) {
        return (double)NAN;
    }
    return m->neginf_count > 0 ? (double)-INFINITY : m->min; /* +inf where +inf is all there is */
}

double spin_moments_max(const spin_moments *m)
{
    if (m->nan_count > 0 || spin_moments_count(m) == 0) {
        return (double)NAN;
    }
    return m->posinf_count > 0 ? (double)INFINITY : m->max;
}
