/* Reads memory and does as little else as keeps the compiler from leaving the reads out: the speed that a
 * reduction is compared with. Several ways to read, since none is the fastest on every machine: one stream or
 * several, with and without asking for lines ahead. Each takes whole 512-byte steps from a 64-byte boundary
 * and returns the XOR of what it read, so that a caller can check that two ways saw the same bytes.
 */
#include <stddef.h>
#include <stdint.h>

typedef uint64_t line __attribute__((vector_size(64), may_alias));

enum { STEP = 8 }; /* lines in flight, each with an accumulator of its own: none waits for another */

/* Reads n lines in `streams` runs side by side; `ahead`: how many bytes ahead lines are asked for, or 0. */
static inline __attribute__((always_inline)) uint64_t read_lines(const line *data, size_t n, size_t streams,
                                                                 size_t ahead) {
    const size_t length = n / streams, step = STEP / streams;
    line sum[STEP] = {{0}};
    for (size_t i = 0; i < length; i += step)
        for (size_t s = 0; s < streams; s++)
            for (size_t k = 0; k < step; k++) {
                const line *at = data + s * length + i + k;
                if (ahead) __builtin_prefetch((const char *)at + ahead, 0, 3);
                sum[s * step + k] ^= *at;
            }
    uint64_t all = 0;
    for (size_t k = 0; k < STEP; k++)
        for (size_t j = 0; j < sizeof(line) / sizeof(uint64_t); j++) all ^= sum[k][j];
    return all;
}

#define WAY(name, streams, ahead) \
    uint64_t name(const void *data, size_t lines) { return read_lines(data, lines, streams, ahead); }

WAY(read_one, 1, 0)
WAY(read_one_ahead, 1, 512)
WAY(read_one_far_ahead, 1, 2048)
WAY(read_two, 2, 0)
WAY(read_two_ahead, 2, 1024)
WAY(read_four, 4, 0)
