/* Prints, a line a case, what the arithmetic gives, to the bit: bits.txt beside this file is what every machine, compiler
 * and target must print. Numbers are printed and mixed as integers, so byte order does not show.
 *
 *     bits [TARGET]    with the kernels named, or the best that there are */
#include "check.h"
#include "rows.h"

#include <inttypes.h>

#define LONGEST (3 * BLOCK + 1)

static const char *const type_names[SPIN_DTYPES] = {"float64", "float32", "int64", "int32"};

static union {
    double f64[LONGEST];
    float f32[LONGEST];
    int64_t i64[LONGEST];
    int32_t i32[LONGEST];
} data;

static uint64_t pattern(double x)
{
    uint64_t bits;
    const double canonical = isnan(x) ? (double)NAN : x; /* which NaN it is, the processor decides */
    memcpy(&bits, &canonical, sizeof bits);
    return isnan(x) ? UINT64_C(0x7ff8000000000000) : bits;
}

static uint64_t mixed(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return h ^ (h >> 32);
}

static uint64_t mixed_state(uint64_t h, const spin_moments *m)
{
    const uint64_t words[] = {(uint64_t)m->count,       pattern(m->mean),         pattern(m->mean_low),
                              pattern(m->m2),           pattern(m->min),          pattern(m->max),
                              (uint64_t)m->nan_count,   (uint64_t)m->posinf_count, (uint64_t)m->neginf_count};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        h = mixed(h, words[i]);
    }
    return h;
}

static void print_state(const char *name, uint64_t h, const spin_moments *m)
{
    printf("%s: %016" PRIx64 " mean %016" PRIx64 " m2 %016" PRIx64 " std %016" PRIx64 "\n", name, h,
           pattern(m->mean), pattern(m->m2), pattern(spin_moments_std(m, 0.0)));
}

enum { FRACTIONS, OFFSET, MAGNITUDES, TINY, VAST, HOLES, FAMILIES };

static const char *const family_names[FAMILIES] = {"fractions", "offset", "magnitudes", "tiny", "huge", "holes"};

/* The exponents of the greatest and of the least number of a type. */
static double value(int family, int64_t i, int greatest, int least)
{
    const double u = uniform() - 0.5;
    switch (family) {
    case FRACTIONS:
        return i % 7 ? u : -1e6 * u;
    case OFFSET:
        return 1e9 + u;
    case MAGNITUDES:
        return ldexp(u, (int)(next() % (unsigned)greatest) - greatest / 2);
    case TINY: /* subnormals: floor, so that no conversion rounds */
        return ldexp(floor(u * 64), least);
    case VAST:
        return ldexp(u < 0 ? -1.875 : 1.0 + u, greatest);
    default:
        return i % 97 == 3 ? (double)NAN : i % 61 == 5 ? (double)INFINITY : i == 1000 ? (double)-INFINITY : u;
    }
}

static void fill(spin_dtype dtype, int family)
{
    for (int64_t i = 0; i < LONGEST; i++) {
        const uint64_t bits = next();
        const int64_t whole = (int64_t)(bits >> 1) >> (bits % 63);
        const int single = dtype == SPIN_FLOAT32;
        const double x = value(family, i, single ? 127 : 1023, single ? -149 : -1074);
        switch (dtype) {
        case SPIN_FLOAT64:
            data.f64[i] = x;
            break;
        case SPIN_FLOAT32:
            data.f32[i] = (float)x;
            break;
        case SPIN_INT64:
            data.i64[i] = i % 3 ? whole : -whole - 1;
            break;
        default:
            data.i32[i] = (int32_t)(bits >> 32);
        }
    }
}

static void kernels(void)
{
    char name[64];
    for (int dtype = 0; dtype < SPIN_DTYPES; dtype++) {
        const int families = dtype < SPIN_INT64 ? FAMILIES : 1;
        for (int family = 0; family < families; family++) {
            uint64_t h = 0;
            spin_moments m = of(NULL, 0);
            fill((spin_dtype)dtype, family);
            for (int64_t n = 1; n <= LONGEST; n += n < 100 ? 1 : n % BLOCK > 2 && n % BLOCK < BLOCK - 2 ? 613 : 1) {
                spin_moments_init(&m);
                spin_moments_reduce(&m, &data, n, (spin_dtype)dtype);
                h = mixed_state(h, &m);
            }
            snprintf(name, sizeof name, "%s %s", type_names[dtype], families > 1 ? family_names[family] : "all bits");
            print_state(name, h, &m);
        }
    }
}

static void states(void)
{
    uint64_t h = 0;
    spin_moments by_one = of(NULL, 0), parts = of(NULL, 0);
    fill(SPIN_FLOAT64, OFFSET);
    for (int64_t i = 0; i < 1000; i++) {
        spin_moments_update(&by_one, data.f64[i]);
        h = mixed_state(h, &by_one);
    }
    print_state("update", h, &by_one);
    h = 0;
    for (int64_t i = 0, n = 1; i + n < LONGEST; i += n, n = n % 37 + 1) {
        const spin_moments part = of(data.f64 + i, n);
        spin_moments_merge(&parts, &part);
        h = mixed_state(h, &parts);
    }
    print_state("merge", h, &parts);
}

static void rows(void)
{
    static const char *const keys[] = {"EpRet", "", "LossPi", "\xc3\xa9", "a key that is longer than a word or two"};
    spin_row ranks[3][SPIN_MESSAGE_ROWS];
    for (int rank = 0; rank < 3; rank++) {
        spin_rows_clear(ranks[rank], SPIN_MESSAGE_ROWS);
        spin_row_header(&ranks[rank][0], spin_hash(7, "row", 3), 5);
        for (int k = 0; k < 5; k++) {
            const spin_moments m = of(data.f64 + 100 * rank, k ? 31 * k + rank : 0);
            spin_row_key(&ranks[rank][1 + k], spin_hash(7, keys[k], strlen(keys[k])), &m, rank);
        }
    }
    spin_rows_merge(ranks[0], ranks[1], SPIN_MESSAGE_ROWS);
    spin_rows_merge(ranks[1], ranks[2], SPIN_MESSAGE_ROWS);
    printf("agree: %d\n", spin_rows_agree(ranks[2], 5));
    for (int k = 0; k < 5; k++) {
        const spin_row *row = &ranks[2][1 + k];
        const spin_key_row *key = &row->body.key;
        char name[64];
        snprintf(name, sizeof name, "row %d of %d ranks, %d to %d, %016" PRIx64, k, row->ranks, key->least_rank,
                 key->greatest_rank, row->least_hash);
        print_state(name, mixed(pattern(key->least_mean), pattern(key->greatest_mean)), &key->moments);
    }
}

int main(int argc, char **argv)
{
    if (spin_target_select(argc > 1 ? argv[1] : NULL) != 0) {
        printf("no target %s here\n", argc > 1 ? argv[1] : "");
        return 1;
    }
    kernels();
    states();
    rows();
    return 0;
}
