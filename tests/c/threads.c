/* Threads that reduce parts of one array at the same time, and merge what they found: for ThreadSanitizer, and for the
 * bits, which must be those of one thread.
 *
 * Prints what fails and, last, "N passed, N failed"; exits with 1 where anything failed. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, CHUNKS = 13, CHUNK = 4 * BLOCK, ROUNDS = 20 };

static double data[CHUNKS * CHUNK - 1];
static const int64_t length = CHUNKS * CHUNK - 1;
static spin_moments parts[CHUNKS];
static spin_moments shared;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* As Chunks.work in _buffers.pxi: chunks by turns. Then into one state under a lock, as threads that update one. */
static void *work(void *argument)
{
    const int64_t first = *(const int64_t *)argument;
    for (int64_t i = first; i < CHUNKS; i += THREADS) {
        const int64_t begin = i * CHUNK, n = length - begin < CHUNK ? length - begin : CHUNK;
        spin_moments_init(&parts[i]);
        spin_moments_reduce(&parts[i], data + begin, n, SPIN_FLOAT64);
        pthread_mutex_lock(&guard);
        spin_moments_merge(&shared, &parts[i]);
        pthread_mutex_unlock(&guard);
    }
    return (void *)spin_target_current(); /* readers of the table, too */
}

int main(void)
{
    for (int64_t i = 0; i < length; i++) {
        data[i] = i % 1001 == 5 ? (double)NAN : uniform();
    }
    const spin_moments whole = of(data, length);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        int64_t first[THREADS];
        spin_tree tree;
        spin_moments all = of(NULL, 0);
        spin_moments_init(&shared);
        for (int t = 0; t < THREADS; t++) {
            first[t] = t;
            check(pthread_create(&threads[t], NULL, work, &first[t]) == 0, "a thread starts");
        }
        for (int t = 0; t < THREADS; t++) {
            void *target;
            check(pthread_join(threads[t], &target) == 0, "a thread ends");
            check(target == (const void *)spin_target_current(), "all use the same kernels");
        }
        spin_tree_init(&tree);
        for (int i = 0; i < CHUNKS; i++) {
            spin_tree_push(&tree, &parts[i]);
        }
        spin_tree_fold(&tree, &all);
        check(same(&all, &whole), "round %d: the bits of one thread", round);
        check(spin_moments_count(&shared) == length && near(shared.mean, whole.mean, 64 * U), "round %d", round);
    }
    return report();
}
