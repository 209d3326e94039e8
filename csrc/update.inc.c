/* The bulk loop, the only one there is. Compiled once a target and element type by the target files, which define
 *
 *     SPIN_OP(name)  pastes target and element type to a name: the kernel's own, and those of the operations below
 *     SPIN_T         the element type
 *
 * and provide, as a type or function each, for vectors of doubles of the target's width
 *
 *     vec, vec_set1, vec_add, vec_accumulate (an addition too), vec_sub, vec_mul, vec_store
 *     SPIN_OP(widen)     the next elements as one vec of doubles: from memory, or from the ext that holds them
 *
 * and for the extremes, compared in whatever type of the target keeps the order of SPIN_T (its scalar is ext_t)
 *
 *     SPIN_OP(ext), SPIN_OP(ext_t), SPIN_OP(ext_load), SPIN_OP(ext_min), SPIN_OP(ext_max), SPIN_OP(ext_store)
 *
 * Each of SPIN_LANES lanes sums every SPIN_LANES-th element, then the lanes are folded in halves: this order makes the
 * bits, and the vectors only carry it. The last, partial row is filled up with deviations of zero. */
void SPIN_OP(spin)(spin_partial *out, const void *data, int64_t n, double pivot)
{
    enum {
        VECS = SPIN_LANES * sizeof(double) / sizeof(vec),
        PER_VEC = SPIN_LANES / VECS,
        EXTS = SPIN_LANES * sizeof(SPIN_OP(ext_t)) / sizeof(SPIN_OP(ext)),
        PER_EXT = SPIN_LANES / EXTS
    };
    const SPIN_T *x = (const SPIN_T *)data;
    const int64_t rows = n / SPIN_LANES;
    const int rest = (int)(n % SPIN_LANES);
    double sum[SPIN_LANES] = {0}, sum_sq[SPIN_LANES] = {0};
    SPIN_OP(ext_t) low[SPIN_LANES], high[SPIN_LANES];

    for (int l = 0; l < SPIN_LANES; l++) {
        low[l] = high[l] = (SPIN_OP(ext_t))x[0];
    }
    if (rows > 0) {
        const vec about = vec_set1(pivot);
        vec s[VECS], q[VECS];
        SPIN_OP(ext) lo[EXTS], hi[EXTS];

        for (int v = 0; v < VECS; v++) {
            s[v] = q[v] = vec_set1(0.0);
        }
        for (int e = 0; e < EXTS; e++) {
            lo[e] = hi[e] = SPIN_OP(ext_load)(x + e * PER_EXT);
        }
        for (const SPIN_T *row = x, *end = x + rows * SPIN_LANES; row < end; row += SPIN_LANES) {
            for (int e = 0; e < EXTS; e++) {
                const SPIN_OP(ext) w = SPIN_OP(ext_load)(row + e * PER_EXT);
                lo[e] = SPIN_OP(ext_min)(w, lo[e]);
                hi[e] = SPIN_OP(ext_max)(w, hi[e]);
                for (int v = e * VECS / EXTS; v < (e + 1) * VECS / EXTS; v++) {
                    const vec d = vec_sub(SPIN_OP(widen)(row + v * PER_VEC, w), about);
                    s[v] = vec_accumulate(s[v], d);
                    q[v] = vec_add(q[v], vec_mul(d, d));
                }
            }
        }
        for (int v = 0; v < VECS; v++) {
            vec_store(sum + v * PER_VEC, s[v]);
            vec_store(sum_sq + v * PER_VEC, q[v]);
        }
        for (int e = 0; e < EXTS; e++) {
            SPIN_OP(ext_store)(low + e * PER_EXT, lo[e]);
            SPIN_OP(ext_store)(high + e * PER_EXT, hi[e]);
        }
    }
    x += rows * SPIN_LANES;
    for (int l = 0; l < rest; l++) {
        const double d = (double)x[l] - pivot;
        const SPIN_OP(ext_t) w = (SPIN_OP(ext_t))x[l];
        sum[l] += d;
        sum_sq[l] += d * d;
        low[l] = w < low[l] ? w : low[l];
        high[l] = w > high[l] ? w : high[l];
    }
    for (int half = SPIN_LANES / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; l++) {
            sum[l] += sum[l + half];
            sum_sq[l] += sum_sq[l + half];
            low[l] = low[l + half] < low[l] ? low[l + half] : low[l];
            high[l] = high[l + half] > high[l] ? high[l + half] : high[l];
        }
    }
    out->sum = sum[0];
    out->sum_sq = sum_sq[0];
    out->min = (double)low[0];
    out->max = (double)high[0];
}
#undef SPIN_OP
#undef SPIN_T
