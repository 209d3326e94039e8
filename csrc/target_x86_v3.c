/* AVX2, in vectors of 32 bytes. FMA comes with the level; the bits allow it for additions alone. */
#include "kernels.h"

#ifdef SPIN_HAVE_X86_TARGETS
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), \
                             apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

#include <immintrin.h>

typedef __m256d vec;

static inline vec vec_set1(double a) { return _mm256_set1_pd(a); }
static inline vec vec_add(vec a, vec b) { return _mm256_add_pd(a, b); }
static inline vec vec_mul(vec a, vec b) { return _mm256_mul_pd(a, b); }
static inline void vec_store(double *p, vec a) { _mm256_storeu_pd(p, a); }
/* a - b and sum + a, to the bit, on the pipes that multiply: those that add are the busier ones in this loop. */
static inline vec vec_sub(vec a, vec b) { return _mm256_fmsub_pd(a, vec_set1(1.0), b); }
static inline vec vec_accumulate(vec sum, vec a) { return _mm256_fmadd_pd(a, vec_set1(1.0), sum); }

/* min and max give their second operand where the comparison is false, as the scalar loop does. */
typedef double x86_v3_float64_ext_t;
typedef __m256d x86_v3_float64_ext;
static inline vec x86_v3_float64_widen(const double *p, __m256d w) { return (void)p, w; }
static inline __m256d x86_v3_float64_ext_load(const double *p) { return _mm256_loadu_pd(p); }
static inline __m256d x86_v3_float64_ext_min(__m256d w, __m256d m) { return _mm256_min_pd(w, m); }
static inline __m256d x86_v3_float64_ext_max(__m256d w, __m256d m) { return _mm256_max_pd(w, m); }
static inline void x86_v3_float64_ext_store(double *p, __m256d m) { _mm256_storeu_pd(p, m); }

typedef float x86_v3_float32_ext_t;
typedef __m256 x86_v3_float32_ext;
static inline vec x86_v3_float32_widen(const float *p, __m256 w)
{
    (void)w;
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
}
static inline __m256 x86_v3_float32_ext_load(const float *p) { return _mm256_loadu_ps(p); }
static inline __m256 x86_v3_float32_ext_min(__m256 w, __m256 m) { return _mm256_min_ps(w, m); }
static inline __m256 x86_v3_float32_ext_max(__m256 w, __m256 m) { return _mm256_max_ps(w, m); }
static inline void x86_v3_float32_ext_store(float *p, __m256 m) { _mm256_storeu_ps(p, m); }

/* AVX2 has no conversion from int64. Each half is placed in the mantissa of a double of known exponent: the high one,
 * sign flipped to be unsigned, as 2^84 + 2^32 * (high + 2^31), the low one as 2^52 + low. Taking both constants off
 * the first is exact, so the final addition is the only rounding. */
typedef double x86_v3_int64_ext_t;
typedef __m256d x86_v3_int64_ext;
static inline __m256d x86_v3_int64_ext_load(const int64_t *p)
{
    const __m256i x = _mm256_loadu_si256((const __m256i *)p);
    const __m256i exp52 = _mm256_set1_epi64x(0x4330000000000000);
    const __m256i exp84 = _mm256_set1_epi64x(0x4530000080000000);
    const __m256i low = _mm256_blend_epi32(x, exp52, 0xAA);
    const __m256i high = _mm256_xor_si256(_mm256_srli_epi64(x, 32), exp84);
    const __m256d constants = _mm256_set1_pd(0x1p84 + 0x1p63 + 0x1p52);
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), constants), _mm256_castsi256_pd(low));
}
static inline vec x86_v3_int64_widen(const int64_t *p, __m256d w) { return (void)p, w; }
static inline __m256d x86_v3_int64_ext_min(__m256d w, __m256d m) { return _mm256_min_pd(w, m); }
static inline __m256d x86_v3_int64_ext_max(__m256d w, __m256d m) { return _mm256_max_pd(w, m); }
static inline void x86_v3_int64_ext_store(double *p, __m256d m) { _mm256_storeu_pd(p, m); }

typedef int32_t x86_v3_int32_ext_t;
typedef __m256i x86_v3_int32_ext;
static inline vec x86_v3_int32_widen(const int32_t *p, __m256i w)
{
    (void)w;
    return _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)p));
}
static inline __m256i x86_v3_int32_ext_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline __m256i x86_v3_int32_ext_min(__m256i w, __m256i m) { return _mm256_min_epi32(w, m); }
static inline __m256i x86_v3_int32_ext_max(__m256i w, __m256i m) { return _mm256_max_epi32(w, m); }
static inline void x86_v3_int32_ext_store(int32_t *p, __m256i m) { _mm256_storeu_si256((__m256i *)p, m); }

#define SPIN_OP(name) x86_v3_float64_##name
#define SPIN_T double
#include "update.inc.c"

#define SPIN_OP(name) x86_v3_float32_##name
#define SPIN_T float
#include "update.inc.c"

#define SPIN_OP(name) x86_v3_int64_##name
#define SPIN_T int64_t
#include "update.inc.c"

#define SPIN_OP(name) x86_v3_int32_##name
#define SPIN_T int32_t
#include "update.inc.c"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
