/* Rows of messages: their hash, the merge in rank order, what disagreement does, and whether ranks agree.
 *
 * Prints what fails and, last, "N passed, N failed"; exits with 1 where anything failed. */
#include "check.h"
#include "rows.h"

enum { KEYS = 3, RANKS = 4 };

static spin_moments numbers(int n, double from)
{
    double x[16];
    for (int i = 0; i < n; i++) {
        x[i] = from + i;
    }
    return of(x, n);
}

/* The message of a rank: key k has k + rank values from 10 * rank on, but none of key 0 on rank 0. */
static void message(spin_row *rows, int rank, uint64_t call, int64_t keys)
{
    spin_rows_clear(rows, SPIN_MESSAGE_ROWS);
    spin_row_header(&rows[0], call, keys);
    for (int k = 0; k < (int)keys; k++) {
        const spin_moments m = numbers(k + rank, 10.0 * rank);
        spin_row_key(&rows[1 + k], spin_hash(call, "key", (size_t)k), &m, rank);
    }
}

static int same_rows(const spin_row *a, const spin_row *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

static void hashes_differ_where_anything_does(void)
{
    static uint64_t seen[2 * 256 * 4];
    size_t n = 0;
    for (uint64_t seed = 0; seed < 2; seed++) {
        for (int byte = 0; byte < 256; byte++) {
            for (size_t length = 0; length < 4; length++) {
                const char text[4] = {'a', (char)byte, 'a', 'a'};
                const uint64_t h = spin_hash(seed, text, length);
                if (length < 2 && byte > 0) {
                    continue; /* the same text as before */
                }
                for (size_t i = 0; i < n; i++) {
                    check(seen[i] != h, "seed %d byte %d length %zu: seen", (int)seed, byte, length);
                }
                seen[n++] = h;
            }
        }
    }
    check(spin_hash(1, "", 0) == spin_hash(1, NULL, 0), "no bytes are no bytes");
}

static void ranks_merge_in_order(void)
{
    static spin_row rows[RANKS][SPIN_MESSAGE_ROWS], part[RANKS][SPIN_MESSAGE_ROWS];
    for (int rank = 0; rank < RANKS; rank++) {
        message(rows[rank], rank, 5, KEYS);
        memcpy(part[rank], rows[rank], sizeof part[rank]);
    }
    for (int rank = 1; rank < RANKS; rank++) {
        spin_rows_merge(rows[rank - 1], rows[rank], SPIN_MESSAGE_ROWS);
        for (size_t i = 0; i < SPIN_MESSAGE_ROWS; i++) { /* a message in parts of one row */
            spin_rows_merge(&part[rank - 1][i], &part[rank][i], 1);
        }
    }
    const spin_row *all = rows[RANKS - 1];
    check(same_rows(all, part[RANKS - 1], SPIN_MESSAGE_ROWS), "any part of a message may be merged alone");
    check(spin_rows_agree(all, KEYS), "they agree");
    for (int k = 0; k < KEYS; k++) {
        const spin_key_row *key = &all[1 + k].body.key;
        const int with = k ? RANKS : RANKS - 1, first = k ? 0 : 1;
        int64_t count = 0;
        double sum = 0.0;
        for (int rank = 0; rank < RANKS; rank++) {
            for (int i = 0; i < k + rank; i++, count++) {
                sum += 10.0 * rank + i;
            }
        }
        check(all[1 + k].ranks == with && key->moments.count == count, "key %d: counts", k);
        check(near(key->moments.mean, sum / (double)count, 16 * U * 64), "key %d: mean %.17g", k, key->moments.mean);
        check(key->least_rank == first && key->greatest_rank == RANKS - 1, "key %d: ranks", k);
        check(key->least_mean == numbers(k + first, 10.0 * first).mean, "key %d: least mean", k);
    }
    spin_row none[2];
    spin_rows_clear(none, 2);
    spin_rows_merge(&none[0], &none[1], 1);
    check(same_rows(&none[0], &none[1], 1), "unused rows stay so");
}

static void of_equal_means_the_lowest_rank_is_named_and_nan_before_all(void)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    const struct {
        double mean[2];
        int least, greatest;
    } table[] = {{{1, 1}, 0, 0}, {{1, 2}, 0, 1}, {{2, 1}, 1, 0},       {{nan, 1}, 0, 0},
                 {{1, nan}, 1, 1}, {{nan, nan}, 0, 0}, {{inf, -inf}, 1, 0}, {{-inf, inf}, 0, 1}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        spin_row row[2];
        for (int rank = 0; rank < 2; rank++) {
            const spin_moments m = of(&table[i].mean[rank], 1);
            spin_row_key(&row[rank], 1, &m, rank);
        }
        spin_rows_merge(&row[0], &row[1], 1);
        const spin_key_row *key = &row[1].body.key;
        check(key->least_rank == table[i].least && key->greatest_rank == table[i].greatest, "row %zu: %d %d", i,
              key->least_rank, key->greatest_rank);
        check(row[1].ranks == 2 && spin_moments_count(&key->moments) == 2, "row %zu: counts", i);
    }
    const spin_moments empty = of(NULL, 0), five = numbers(1, 5);
    for (int side = 0; side < 2; side++) { /* a rank without values */
        spin_row row[2];
        spin_row_key(&row[side], 1, &empty, side);
        spin_row_key(&row[!side], 1, &five, !side);
        spin_rows_merge(&row[0], &row[1], 1);
        check(row[1].ranks == 1 && row[1].body.key.least_rank == !side && row[1].body.key.greatest_mean == 5.0,
              "empty rank %d", side);
    }
}

static void ranks_that_are_not_in_the_same_call_do_not_agree(void)
{
    static spin_row a[SPIN_MESSAGE_ROWS], b[SPIN_MESSAGE_ROWS];
    const struct {
        uint64_t call;
        int64_t keys;
        const char *what;
    } other[] = {{6, KEYS, "another call"}, {5, KEYS - 1, "fewer keys"}, {5, KEYS + 1, "more keys"}, {5, 0, "none"}};
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        for (int order = 0; order < 2; order++) {
            message(order ? b : a, order, 5, KEYS);
            message(order ? a : b, 1 - order, other[i].call, other[i].keys);
            spin_rows_merge(a, b, SPIN_MESSAGE_ROWS);
            check(!spin_rows_agree(b, KEYS), "%s", other[i].what);
            check(!spin_rows_agree(b, (size_t)other[i].keys), "%s, seen from there", other[i].what);
        }
    }
    message(a, 0, 5, KEYS);
    check(spin_rows_agree(a, KEYS) && !spin_rows_agree(a, KEYS - 1), "a row that nobody counted");
    a[2].greatest_hash++;
    check(!spin_rows_agree(a, KEYS), "another key");
    message(a, 0, 5, KEYS);
    a[0].body.count.greatest++;
    check(!spin_rows_agree(a, KEYS), "another number of keys");
    message(a, 0, 5, KEYS);
    a[0].kind = SPIN_ROW_KEY;
    check(!spin_rows_agree(a, KEYS), "no header");
    spin_rows_clear(a, SPIN_MESSAGE_ROWS);
    check(!spin_rows_agree(a, 0), "no message at all");
}

static void a_mixed_row_stays_mixed(void)
{
    spin_row row[4], zero[1];
    const spin_moments m = numbers(2, 1);
    spin_rows_clear(zero, 1);
    for (int first = 0; first < 3; first++) {
        spin_rows_clear(&row[SPIN_ROW_UNUSED], 1);
        spin_row_header(&row[SPIN_ROW_HEADER], 1, 2);
        spin_row_key(&row[SPIN_ROW_KEY], 1, &m, 0);
        spin_rows_merge(&row[(first + 1) % 3], &row[first], 1);
        check(row[first].kind == SPIN_ROW_MIXED, "kinds %d and %d", first, (first + 1) % 3);
        zero->kind = SPIN_ROW_MIXED;
        check(same_rows(&row[first], zero, 1), "it holds nothing else");
        row[SPIN_ROW_MIXED] = row[first];
        for (int with = 0; with < 4; with++) {
            spin_row left = row[with], right = row[SPIN_ROW_MIXED];
            spin_rows_merge(&row[SPIN_ROW_MIXED], &left, 1);
            spin_rows_merge(&row[with], &right, 1);
            check(same_rows(&left, zero, 1) && same_rows(&right, zero, 1), "mixed and %d", with);
        }
    }
}

int main(void)
{
    hashes_differ_where_anything_does();
    ranks_merge_in_order();
    of_equal_means_the_lowest_rank_is_named_and_nan_before_all();
    ranks_that_are_not_in_the_same_call_do_not_agree();
    a_mixed_row_stays_mixed();
    return report();
}
