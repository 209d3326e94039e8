/* What the compiler takes for granted on its platform: vectors of 16 bytes where it knows them as types (SSE2 on
 * x86-64, NEON on arm64, VSX, z), single doubles elsewhere. */
#include "kernels.h"

#ifdef SPIN_GNU_C
typedef double vec __attribute__((vector_size(16)));

static inline vec vec_set1(double a) { return (vec){a, a}; }
static inline void vec_store(double *p, vec a) { p[0] = a[0]; p[1] = a[1]; }
#if defined(__SSE2__)
#include <emmintrin.h>
static inline vec ext_min(vec w, vec m) { return _mm_min_pd(w, m); }
static inline vec ext_max(vec w, vec m) { return _mm_max_pd(w, m); }
#else
typedef int64_t mask __attribute__((vector_size(16)));
static inline vec vec_select(mask m, vec a, vec b) { return (vec)(((mask)a & m) | ((mask)b & ~m)); }
static inline vec ext_min(vec w, vec m) { return vec_select(w < m, w, m); }
static inline vec ext_max(vec w, vec m) { return vec_select(w > m, w, m); }
#endif
#define SPIN_WIDEN(p) ((vec){(double)(p)[0], (double)(p)[1]})
#else
typedef double vec;

static inline vec vec_set1(double a) { return a; }
static inline void vec_store(double *p, vec a) { *p = a; }
static inline vec ext_min(vec w, vec m) { return w < m ? w : m; }
static inline vec ext_max(vec w, vec m) { return w > m ? w : m; }
#define SPIN_WIDEN(p) ((double)*(p))
#endif

static inline vec vec_add(vec a, vec b) { return a + b; }
static inline vec vec_sub(vec a, vec b) { return a - b; }
static inline vec vec_mul(vec a, vec b) { return a * b; }
static inline vec vec_accumulate(vec sum, vec a) { return sum + a; }

/* Extremes are compared as doubles: the conversion keeps the order, and its result is at hand. */
#define SPIN_OPERATIONS(dtype, type)                                                                                \
    typedef double baseline_##dtype##_ext_t;                                                                        \
    typedef vec baseline_##dtype##_ext;                                                                             \
    static inline vec baseline_##dtype##_widen(const type *p, vec w) { return (void)p, w; }                         \
    static inline vec baseline_##dtype##_ext_load(const type *p) { return SPIN_WIDEN(p); }                          \
    static inline vec baseline_##dtype##_ext_min(vec w, vec m) { return ext_min(w, m); }                            \
    static inline vec baseline_##dtype##_ext_max(vec w, vec m) { return ext_max(w, m); }                            \
    static inline void baseline_##dtype##_ext_store(double *p, vec m) { vec_store(p, m); }

SPIN_OPERATIONS(float64, double)
SPIN_OPERATIONS(float32, float)
SPIN_OPERATIONS(int64, int64_t)
SPIN_OPERATIONS(int32, int32_t)

#define SPIN_OP(name) baseline_float64_##name
#define SPIN_T double
#include "update.inc.c"

#define SPIN_OP(name) baseline_float32_##name
#define SPIN_T float
#include "update.inc.c"

#define SPIN_OP(name) baseline_int64_##name
#define SPIN_T int64_t
#include "update.inc.c"

#define SPIN_OP(name) baseline_int32_##name
#define SPIN_T int32_t
#include "update.inc.c"
