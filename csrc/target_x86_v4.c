/* AVX-512 as servers have had it since Skylake, in vectors of 64 bytes. For elements of 8 bytes: those of 4 are
 * dearest to convert, which is quicker in vectors of 32 bytes, so the table takes x86_v3's loops for them. */
#include "kernels.h"

#ifdef SPIN_HAVE_X86_TARGETS
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"))), \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,prefer-vector-width=512")
#endif

#include <immintrin.h>

typedef __m512d vec;

static inline vec vec_set1(double a) { return _mm512_set1_pd(a); }
static inline vec vec_add(vec a, vec b) { return _mm512_add_pd(a, b); }
static inline vec vec_sub(vec a, vec b) { return _mm512_sub_pd(a, b); }
static inline vec vec_mul(vec a, vec b) { return _mm512_mul_pd(a, b); }
static inline void vec_store(double *p, vec a) { _mm512_storeu_pd(p, a); }
/* sum + a, to the bit, on the pipes that multiply: those that add are the busier ones in this loop. */
static inline vec vec_accumulate(vec sum, vec a) { return _mm512_fmadd_pd(a, vec_set1(1.0), sum); }

/* The value, in a register: gcc would read it from memory at each use, twice as often across two cache lines. */
#define HELD(load)                                                                                                  \
    ({                                                                                                              \
        __typeof__(load) held_ = (load);                                                                            \
        __asm__("" : "+v"(held_));                                                                                  \
        held_;                                                                                                      \
    })

/* min and max give their second operand where the comparison is false, as the scalar loop does. */
typedef double x86_v4_float64_ext_t;
typedef __m512d x86_v4_float64_ext;
static inline vec x86_v4_float64_widen(const double *p, __m512d w) { return (void)p, w; }
static inline __m512d x86_v4_float64_ext_load(const double *p) { return HELD(_mm512_loadu_pd(p)); }
static inline __m512d x86_v4_float64_ext_min(__m512d w, __m512d m) { return _mm512_min_pd(w, m); }
static inline __m512d x86_v4_float64_ext_max(__m512d w, __m512d m) { return _mm512_max_pd(w, m); }
static inline void x86_v4_float64_ext_store(double *p, __m512d m) { _mm512_storeu_pd(p, m); }

typedef int64_t x86_v4_int64_ext_t;
typedef __m512i x86_v4_int64_ext;
static inline vec x86_v4_int64_widen(const int64_t *p, __m512i w) { return (void)p, _mm512_cvtepi64_pd(w); }
static inline __m512i x86_v4_int64_ext_load(const int64_t *p) { return HELD(_mm512_loadu_si512(p)); }
static inline __m512i x86_v4_int64_ext_min(__m512i w, __m512i m) { return _mm512_min_epi64(w, m); }
static inline __m512i x86_v4_int64_ext_max(__m512i w, __m512i m) { return _mm512_max_epi64(w, m); }
static inline void x86_v4_int64_ext_store(int64_t *p, __m512i m) { _mm512_storeu_si512(p, m); }

#define SPIN_OP(name) x86_v4_float64_##name
#define SPIN_T double
#include "update.inc.c"

#define SPIN_OP(name) x86_v4_int64_##name
#define SPIN_T int64_t
#include "update.inc.c"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
