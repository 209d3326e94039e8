/* Elements of any bits, type, number, alignment and split, against the oracle, on every target.
 *
 * Input: type, number, place in memory, number of parts (two bytes each), the parts' lengths, then elements, which are
 * repeated until there are enough. */
#include "fuzz.h"

enum { LONGEST = 2 * SPIN_BLOCK + 100, PARTS = 16 };

static const size_t sizes[SPIN_DTYPES] = {8, 4, 8, 4};

static double element(const void *data, int64_t i, spin_dtype dtype)
{
    switch (dtype) {
    case SPIN_FLOAT64:
        return ((const double *)data)[i];
    case SPIN_FLOAT32:
        return (double)((const float *)data)[i];
    case SPIN_INT64:
        return (double)((const int64_t *)data)[i];
    default:
        return (double)((const int32_t *)data)[i];
    }
}

static spin_moments of(const void *data, int64_t n, spin_dtype dtype)
{
    spin_moments m;
    spin_moments_init(&m);
    spin_moments_reduce(&m, data, n, dtype);
    return m;
}

/* Cut in parts: merged one after the other, and the other way round. */
static void in_parts(const char *x, int64_t n, spin_dtype dtype, input *in, const oracle *want)
{
    spin_moments forth = of(NULL, 0, dtype), back = forth;
    const spin_moments empty = forth;
    const int parts = 1 + take(in, PARTS);
    int64_t begin = 0;
    for (int p = 0; p < parts; p++) {
        const int64_t rest = n - begin, length = p == parts - 1 ? rest : take(in, (int)rest + 1);
        spin_moments part = of(x + (size_t)begin * sizes[dtype], length, dtype), with_empty = empty;
        spin_moments_merge(&with_empty, &part);
        CHECK(same(&with_empty, &part), "empty, then a part");
        spin_moments_merge(&with_empty, &empty);
        CHECK(same(&with_empty, &part), "a part, then empty");
        spin_moments_merge(&forth, &part);
        spin_moments_merge(&part, &back);
        back = part;
        begin += length;
    }
    check_state(&forth, want, parts + 12, "parts");
    check_state(&back, want, parts + 12, "parts, the last one first");
}

static void one_by_one(const double *x, int64_t n)
{
    spin_moments m = of(NULL, 0, SPIN_FLOAT64);
    const oracle want = exactly(x, n);
    for (int64_t i = 0; i < n; i++) {
        spin_moments_update(&m, x[i]);
    }
    check_state(&m, &want, 4 * (int)n, "one by one");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    input in = {bytes, size};
    const spin_dtype dtype = (spin_dtype)take(&in, SPIN_DTYPES);
    const int64_t n = take(&in, LONGEST), start = take(&in, 2 * SPIN_LANES);
    input cuts = in;
    in.at += in.left < 2 * PARTS ? in.left : 2 * PARTS;
    in.left -= in.left < 2 * PARTS ? in.left : 2 * PARTS;
    const size_t have = in.left - in.left % sizes[dtype], want_bytes = (size_t)n * sizes[dtype];
    if (have == 0) {
        return 0;
    }
    /* exactly as long as needed, for the sanitizer to see a read beyond the end */
    char *memory = malloc((size_t)start * sizes[dtype] + want_bytes);
    double *values = malloc((size_t)n * sizeof *values + 1);
    if (memory == NULL || values == NULL) {
        abort();
    }
    char *x = memory + (size_t)start * sizes[dtype];
    for (size_t i = 0; i < want_bytes; i++) {
        x[i] = (char)in.at[i % have];
    }
    for (int64_t i = 0; i < n; i++) {
        values[i] = element(x, i, dtype);
    }
    const oracle want = exactly(values, n);
    spin_moments first = of(NULL, 0, dtype);
    for (size_t t = 0, seen = 0; spin_target_name(t) != NULL; t++) {
        if (spin_target_select(spin_target_name(t)) != 0) {
            continue;
        }
        const spin_moments m = of(x, n, dtype);
        CHECK(!seen++ || same(&m, &first), "%s: other bits", spin_target_name(t));
        first = m;
        check_state(&m, &want, n > SPIN_BLOCK ? 3 : 0, spin_target_name(t));
    }
    const spin_moments again = of(values, n, SPIN_FLOAT64);
    CHECK(same(&again, &first), "elsewhere in memory, as float64: other bits");
    in_parts(x, n, dtype, &cuts, &want);
    one_by_one(values, n < 200 ? n : 200);
    free(memory);
    free(values);
    return 0;
}
