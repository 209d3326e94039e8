/* AVX-512 as servers have had it since Skylake, in vectors of 64 bytes. */
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

/* min and max give their second operand where the comparison is false, as the scalar loop does. */
typedef double x86_v4_float64_ext_t;
typedef __m512d x86_v4_float64_ext;
static inline vec x86_v4_float64_widen(const double *p) { return _mm512_loadu_pd(p); }
static inline __m512d x86_v4_float64_ext_load(const double *p) { return _mm512_loadu_pd(p); }
static inline __m512d x86_v4_float64_ext_min(__m512d w, __m512d m) { return _mm512_min_pd(w, m); }
static inline __m512d x86_v4_float64_ext_max(__m512d w, __m512d m) { return _mm512_max_pd(w, m); }
static inline void x86_v4_float64_ext_store(double *p, __m512d m) { _mm512_storeu_pd(p, m); }

typedef float x86_v4_float32_ext_t;
typedef __m512 x86_v4_float32_ext;
static inline vec x86_v4_float32_widen(const float *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
static inline __m512 x86_v4_float32_ext_load(const float *p) { return _mm512_loadu_ps(p); }
static inline __m512 x86_v4_float32_ext_min(__m512 w, __m512 m) { return _mm512_min_ps(w, m); }
static inline __m512 x86_v4_float32_ext_max(__m512 w, __m512 m) { return _mm512_max_ps(w, m); }
static inline void x86_v4_float32_ext_store(float *p, __m512 m) { _mm512_storeu_ps(p, m); }

typedef int64_t x86_v4_int64_ext_t;
typedef __m512i x86_v4_int64_ext;
static inline vec x86_v4_int64_widen(const int64_t *p) { return _mm512_cvtepi64_pd(_mm512_loadu_si512(p)); }
static inline __m512i x86_v4_int64_ext_load(const int64_t *p) { return _mm512_loadu_si512(p); }
static inline __m512i x86_v4_int64_ext_min(__m512i w, __m512i m) { return _mm512_min_epi64(w, m); }
static inline __m512i x86_v4_int64_ext_max(__m512i w, __m512i m) { return _mm512_max_epi64(w, m); }
static inline void x86_v4_int64_ext_store(int64_t *p, __m512i m) { _mm512_storeu_si512(p, m); }

typedef int32_t x86_v4_int32_ext_t;
typedef __m512i x86_v4_int32_ext;
static inline vec x86_v4_int32_widen(const int32_t *p)
{
    return _mm512_cvtepi32_pd(_mm256_loadu_si256((const __m256i *)p));
}
static inline __m512i x86_v4_int32_ext_load(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline __m512i x86_v4_int32_ext_min(__m512i w, __m512i m) { return _mm512_min_epi32(w, m); }
static inline __m512i x86_v4_int32_ext_max(__m512i w, __m512i m) { return _mm512_max_epi32(w, m); }
static inline void x86_v4_int32_ext_store(int32_t *p, __m512i m) { _mm512_storeu_si512(p, m); }

#define SPIN_OP(name) x86_v4_float64_##name
#define SPIN_T double
#include "update.inc.c"

#define SPIN_OP(name) x86_v4_float32_##name
#define SPIN_T float
#include "update.inc.c"

#define SPIN_OP(name) x86_v4_int64_##name
#define SPIN_T int64_t
#include "update.inc.c"

#define SPIN_OP(name) x86_v4_int32_##name
#define SPIN_T int32_t
#include "update.inc.c"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
