/* Messages of some ranks, made of any calls and values, merged in rank order, as a whole and in parts, against a plain
 * model; then rows of any bits, which must be merged without a fault.
 *
 * Input: number of ranks, then for each rank its call, its number of keys, and for each key one or two values. */
#include "fuzz.h"
#include "rows.h"

enum { RANKS = 5, KEYS = 4 };

static double number(input *in)
{
    static const double special[] = {0.0, 1.0, -1.0, 1e9, -0.0, (double)NAN, (double)INFINITY, -(double)INFINITY};
    double x = 0.0;
    const int which = take(in, 16);
    if (which < 8) {
        return special[which];
    }
    const size_t n = in->left < sizeof x ? in->left : sizeof x;
    memcpy(&x, in->at, n);
    in->at += n;
    in->left -= n;
    return x;
}

static void merge_all(spin_row rows[RANKS][SPIN_MESSAGE_ROWS], int ranks, size_t part)
{
    for (int rank = 1; rank < ranks; rank++) {
        for (size_t i = 0; i < SPIN_MESSAGE_ROWS; i += part) {
            const size_t n = SPIN_MESSAGE_ROWS - i < part ? SPIN_MESSAGE_ROWS - i : part;
            spin_rows_merge(&rows[rank - 1][i], &rows[rank][i], n);
        }
    }
}

static void check_key(const spin_row *row, double values[RANKS][2], const int *counts, int ranks)
{
    const spin_key_row *key = &row->body.key;
    double all[2 * RANKS], least = 0.0, greatest = 0.0;
    int n = 0, with = 0, least_rank = -1, greatest_rank = -1;
    for (int rank = 0; rank < ranks; rank++) {
        spin_moments own;
        spin_moments_init(&own);
        spin_moments_reduce(&own, values[rank], counts[rank], SPIN_FLOAT64);
        for (int i = 0; i < counts[rank]; i++) {
            all[n++] = values[rank][i];
        }
        if (counts[rank] == 0) {
            continue;
        }
        const double mean = spin_moments_mean(&own);
        with++;
        if (least_rank < 0 || (!isnan(least) && (isnan(mean) || mean < least))) {
            least = mean;
            least_rank = rank;
        }
        if (greatest_rank < 0 || (!isnan(greatest) && (isnan(mean) || mean > greatest))) {
            greatest = mean;
            greatest_rank = rank;
        }
    }
    const oracle want = exactly(all, n);
    check_state(&key->moments, &want, 2 * RANKS, "a key");
    CHECK(row->ranks == with, "ranks with values");
    CHECK(key->least_rank == least_rank && key->greatest_rank == greatest_rank, "ranks %d %d, want %d %d",
          key->least_rank, key->greatest_rank, least_rank, greatest_rank);
    CHECK(isnan(least) ? isnan(key->least_mean) : key->least_mean == least, "least mean");
}

static void ranks_that_may_agree(input *in)
{
    static spin_row whole[RANKS][SPIN_MESSAGE_ROWS], parts[RANKS][SPIN_MESSAGE_ROWS];
    static double values[KEYS][RANKS][2];
    int counts[KEYS][RANKS] = {{0}}, calls[RANKS], keys[RANKS], alike = 1;
    const int ranks = 1 + take(in, RANKS);
    const size_t part = 1 + (size_t)take(in, SPIN_MESSAGE_ROWS);
    for (int rank = 0; rank < ranks; rank++) {
        calls[rank] = take(in, 8) == 7;
        keys[rank] = KEYS - (take(in, 8) == 7);
        alike = alike && calls[rank] == calls[0] && keys[rank] == keys[0];
        spin_rows_clear(whole[rank], SPIN_MESSAGE_ROWS);
        spin_row_header(&whole[rank][0], (uint64_t)calls[rank], keys[rank]);
        for (int k = 0; k < keys[rank]; k++) {
            spin_moments m;
            counts[k][rank] = take(in, 3);
            for (int i = 0; i < counts[k][rank]; i++) {
                values[k][rank][i] = number(in);
            }
            spin_moments_init(&m);
            spin_moments_reduce(&m, values[k][rank], counts[k][rank], SPIN_FLOAT64);
            spin_row_key(&whole[rank][1 + k], spin_hash((uint64_t)calls[rank], &k, sizeof k), &m, rank);
        }
    }
    memcpy(parts, whole, sizeof parts);
    merge_all(whole, ranks, SPIN_MESSAGE_ROWS);
    merge_all(parts, ranks, part);
    const spin_row *all = whole[ranks - 1];
    CHECK(memcmp(all, parts[ranks - 1], sizeof whole[0]) == 0, "in parts of %zu rows: other bits", part);
    for (int rank = 0; rank < ranks; rank++) {
        CHECK(spin_rows_agree(all, (size_t)keys[rank]) == alike, "rank %d: agreement", rank);
    }
    for (int k = 0; alike && k < keys[0]; k++) {
        check_key(&all[1 + k], values[k], counts[k], ranks);
    }
}

/* Any bits but counts beyond what rows.h allows: no fault, and MIXED where the kinds differ. */
static void any_bits(input *in)
{
    static spin_row rows[2][SPIN_MESSAGE_ROWS];
    const size_t size = in->left < sizeof rows ? in->left : sizeof rows;
    memset(rows, 0, sizeof rows);
    memcpy(rows, in->at, size);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < SPIN_MESSAGE_ROWS; i++) {
            spin_moments *m = &rows[side][i].body.key.moments;
            int64_t *const counts[] = {&m->count, &m->nan_count, &m->posinf_count, &m->neginf_count};
            for (size_t c = 0; c < 4; c++) {
                *counts[c] &= (INT64_C(1) << 53) - 1;
            }
            rows[side][i].ranks &= 0x3fffffff;
            rows[side][i].kind = rows[side][i].kind & 4 ? SPIN_ROW_KEY : rows[side][i].kind & 3;
        }
    }
    const spin_row first = rows[1][0];
    spin_rows_merge(rows[0], rows[1], SPIN_MESSAGE_ROWS);
    CHECK(first.kind == rows[0][0].kind || rows[1][0].kind == SPIN_ROW_MIXED, "two kinds");
    CHECK(spin_rows_agree(rows[1], (size_t)take(in, SPIN_MESSAGE_ROWS)) <= 1, "agreement");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    input in = {bytes, size};
    if (take(&in, 2)) {
        any_bits(&in);
    }
    else {
        ranks_that_may_agree(&in);
    }
    return 0;
}
