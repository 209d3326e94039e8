/* Rows of messages and their merge. See rows.h for what holds. */
#include "kernels.h" /* refuses a build that computes wrongly */
#include "rows.h"

#include <math.h>
#include <string.h>

_Static_assert(sizeof(spin_row) == 120, "a row has one size on every machine of a job");
_Static_assert(offsetof(spin_row, body) == 24, "no padding before the body, so that rows compare by their bytes");

uint64_t spin_hash(uint64_t seed, const void *data, size_t n)
{
    const unsigned char *byte = data;
    uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < n; i++) { /* FNV-1a: keys are short, and a table or a wide load would cost more */
        h = (h ^ byte[i]) * UINT64_C(0x100000001b3);
    }
    /* The finaliser of splitmix64: FNV alone leaves the high bits of short keys alike. */
    h ^= (uint64_t)n;
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

void spin_rows_clear(spin_row *rows, size_t n)
{
    memset(rows, 0, n * sizeof *rows);
}

void spin_row_header(spin_row *row, uint64_t hash, int64_t keys)
{
    memset(row, 0, sizeof *row);
    row->kind = SPIN_ROW_HEADER;
    row->least_hash = row->greatest_hash = hash;
    row->body.count.least = row->body.count.greatest = keys;
}

void spin_row_key(spin_row *row, uint64_t hash, const spin_moments *m, int32_t rank)
{
    const int has_values = spin_moments_count(m) > 0;

    row->kind = SPIN_ROW_KEY;
    row->ranks = has_values ? 1 : 0;
    row->least_hash = row->greatest_hash = hash;
    row->body.key.moments = *m;
    row->body.key.least_mean = row->body.key.greatest_mean = has_values ? spin_moments_mean(m) : 0.0;
    row->body.key.least_rank = row->body.key.greatest_rank = has_values ? rank : -1;
}

/* Is mean `b` of a higher rank the one to keep, in place of `a`? NaN before all else, the lower rank among equals. */
static int less(double b, double a)
{
    return !isnan(a) && (isnan(b) || b < a);
}

static int greater(double b, double a)
{
    return !isnan(a) && (isnan(b) || b > a);
}

static void merge_keys(const spin_row *in, spin_row *inout)
{
    const spin_key_row *a = &in->body.key;
    spin_key_row *b = &inout->body.key;
    spin_moments both = a->moments;

    spin_moments_merge(&both, &b->moments);
    b->moments = both;
    if (in->ranks > 0 && (inout->ranks == 0 || !less(b->least_mean, a->least_mean))) {
        b->least_mean = a->least_mean;
        b->least_rank = a->least_rank;
    }
    if (in->ranks > 0 && (inout->ranks == 0 || !greater(b->greatest_mean, a->greatest_mean))) {
        b->greatest_mean = a->greatest_mean;
        b->greatest_rank = a->greatest_rank;
    }
    inout->ranks += in->ranks;
}

static void merge_counts(const spin_key_count *a, spin_key_count *b)
{
    b->least = a->least < b->least ? a->least : b->least;
    b->greatest = a->greatest > b->greatest ? a->greatest : b->greatest;
}

void spin_rows_merge(const spin_row *in, spin_row *inout, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const spin_row *a = &in[i];
        spin_row *b = &inout[i];

        if (a->kind != b->kind || a->kind == SPIN_ROW_MIXED) {
            memset(b, 0, sizeof *b);
            b->kind = SPIN_ROW_MIXED;
            continue;
        }
        if (a->kind == SPIN_ROW_UNUSED) {
            continue;
        }
        if (a->kind == SPIN_ROW_KEY) {
            merge_keys(a, b);
        }
        else {
            merge_counts(&a->body.count, &b->body.count);
        }
        b->least_hash = a->least_hash < b->least_hash ? a->least_hash : b->least_hash;
        b->greatest_hash = a->greatest_hash > b->greatest_hash ? a->greatest_hash : b->greatest_hash;
    }
}

int spin_rows_agree(const spin_row *rows, size_t keys)
{
    const spin_row *header = &rows[0];

    if (header->kind != SPIN_ROW_HEADER || header->least_hash != header->greatest_hash
        || header->body.count.least != header->body.count.greatest) {
        return 0;
    }
    for (size_t i = 1; i < SPIN_MESSAGE_ROWS; i++) {
        const int32_t kind = i <= keys ? SPIN_ROW_KEY : SPIN_ROW_UNUSED;
        if (rows[i].kind != kind || rows[i].least_hash != rows[i].greatest_hash) {
            return 0;
        }
    }
    return 1;
}
