/* Rows: what the ranks of a job send one another about their statistics, and how two messages become one.
 *
 * A row is plain data of one size, so that a message is an array of rows of a fixed length: a header, then one row a
 * key, the rest unused. A reduction may be given any part of a message, therefore every row says what it is. Total
 * functions as in moments.h: every input has an answer, nothing allocates, nothing can fail.
 *
 * The ranks of one job must share byte order and struct layout. Limits: ranks below 2^31, up to 2^53 values a key.
 */
#ifndef SPINSTAT_ROWS_H
#define SPINSTAT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "moments.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    SPIN_ROW_UNUSED = 0, /* all bytes zero */
    SPIN_ROW_HEADER = 1,
    SPIN_ROW_KEY = 2,
    SPIN_ROW_MIXED = 3 /* ranks disagree on what the row is; stays so whatever is merged in */
} spin_row_kind;

/* What the ranks say of one key: all their values together, and how far their own means lie apart. */
typedef struct {
    spin_moments moments;
    double least_mean, greatest_mean;  /* of the ranks that have values; 0 where none has */
    int32_t least_rank, greatest_rank; /* whose they are: the lowest rank where several are equal; -1 where none */
} spin_key_row;

/* How many keys the ranks have in this call. */
typedef struct {
    int64_t least, greatest;
} spin_key_count;

typedef union {
    spin_key_row key;
    spin_key_count count; /* of a header */
} spin_row_body;

/* One row. The hash says what the call is about; the ranks agree when the least and the greatest are the same. */
typedef struct {
    int32_t kind;
    int32_t ranks; /* of a key: ranks with values */
    uint64_t least_hash, greatest_hash;
    spin_row_body body;
} spin_row;

/* Rows of a message: the header and the keys of one round. */
#define SPIN_ROUND_KEYS 64
#define SPIN_MESSAGE_ROWS (1 + SPIN_ROUND_KEYS)

/* 64 bits of n bytes and a seed; another seed gives an unrelated function. Not for untrusted keys. */
uint64_t spin_hash(uint64_t seed, const void *data, size_t n);

/* A message of one rank: clear it, fill in the header, then the rows of its keys. */
void spin_rows_clear(spin_row *rows, size_t n);
void spin_row_header(spin_row *row, uint64_t hash, int64_t keys);
void spin_row_key(spin_row *row, uint64_t hash, const spin_moments *m, int32_t rank);

/* inout[i] becomes in[i] and inout[i] together, i below n: the reduction operation. `in` is of lower ranks than
 * `inout` (the merge of moments depends on the order in its last bits). Associative up to rounding in the moments,
 * exactly in all else. A row unused on both sides stays so; of two kinds comes SPIN_ROW_MIXED without moments.
 * Where a rank's mean is NaN the least and the greatest mean are both that NaN, so that the rank can be found.
 * in and inout must not overlap. */
void spin_rows_merge(const spin_row *in, spin_row *inout, size_t n);

/* 1 where all ranks sent a message of the same call and number of keys, row by row, else 0. `keys` is the number of
 * key rows of this round that the asking rank filled in. */
int spin_rows_agree(const spin_row *rows, size_t keys);

#ifdef __cplusplus
}
#endif
#endif
