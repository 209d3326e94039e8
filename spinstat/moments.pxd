from libc.stdint cimport int64_t, uint64_t

cdef extern from "moments.h" nogil:
    ctypedef struct spin_moments:
        int64_t count
        double mean
        double mean_low
        double m2
        double min
        double max
        int64_t nan_count
        int64_t posinf_count
        int64_t neginf_count

    ctypedef enum spin_dtype:
        SPIN_FLOAT64
        SPIN_FLOAT32
        SPIN_INT64
        SPIN_INT32

    ctypedef struct spin_tree:
        uint64_t pushed

    int64_t SPIN_CHUNK

    void spin_moments_init(spin_moments *m)
    void spin_moments_update(spin_moments *m, double x)
    void spin_moments_merge(spin_moments *dst, const spin_moments *src)
    void spin_moments_reduce(spin_moments *m, const void *data, int64_t n, spin_dtype dtype)

    int64_t spin_moments_count(const spin_moments *m)
    double spin_moments_mean(const spin_moments *m)
    double spin_moments_variance(const spin_moments *m, double ddof)
    double spin_moments_std(const spin_moments *m, double ddof)
    double spin_moments_min(const spin_moments *m)
    double spin_moments_max(const spin_moments *m)

    void spin_tree_init(spin_tree *t)
    void spin_tree_push(spin_tree *t, const spin_moments *m)
    void spin_tree_fold(const spin_tree *t, spin_moments *m)

    int spin_target_select(const char *name)
    const char *spin_target_current()
    const char *spin_target_name(size_t i)
    int spin_target_supported(size_t i)
