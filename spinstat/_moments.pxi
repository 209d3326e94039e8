# The public face of the state.

cdef int add(spin_moments *m, object x, str key, int threads) except -1:
    """Add all that x holds to m, or raise and leave m as it was."""
    cdef Converted value
    convert(x, key, &value, 0, threads, None)
    if value.kind == SCALAR:
        spin_moments_update(m, value.value)
        return 0
    spin_moments_merge(m, &value.moments)
    return 0


cdef int check_threads(object threads) except -1:
    if threads is 1:
        return 1
    if isinstance(threads, bool) or not hasattr(threads, "__index__") or threads < 1:
        raise ValueError(f"threads must be a whole number from 1 up, not {threads!r}")
    return min(<object>threads, 1024)


cdef object moments_of(spin_moments *m):
    cdef Moments new = Moments.__new__(Moments)
    new.m = m[0]
    return new


cdef spin_moments state_of(Moments moments):
    """A copy of the state, whole even while another thread adds to it."""
    cdef spin_moments m
    with cython.critical_section(moments):
        m = moments.m
    return m


@cython.final
cdef class Moments:
    """Count, mean, standard deviation, min and max of a stream of numbers, in float64.

    Non-finite values are counted apart and put back by the readers, so no order of arrival changes a result: any
    NaN makes mean, std, min and max NaN; infinities of one sign make the mean that infinity and the std NaN; both
    signs make both NaN. Empty: NaN for all four. Blocks are summed about a pivot and merged by the formula of Chan,
    Golub and LeVeque (1983), single values added by that of Welford (1962).

    Args:
        x: the first values, as for `update`: a number, array or tensor, or a list or tuple of them; None for none.

    Raises:
        TypeError: as `update`.

    Examples:
        >>> from spinstat import Moments
        >>> m = Moments([1.0, 2.0, 4.0])
        >>> m.update([[5.0, 8.0]])
        >>> m.count, m.mean, m.min, m.max
        (5, 4.0, 1.0, 8.0)
        >>> m.variance(), m.std(ddof=1)
        (6.0, 2.7386127875258306)
        >>> both = m + Moments(float("nan"))
        >>> both.count, both.nan_count, both.mean
        (6, 1, nan)
        >>> copy = m.copy()
        >>> copy.merge(both)
        >>> Moments.from_bytes(m.to_bytes()) == m != copy
        True
    """
    cdef spin_moments m

    __hash__ = None

    def __cinit__(self):
        spin_moments_init(&self.m)

    def __init__(self, x=None):
        spin_moments_init(&self.m)
        if x is not None:
            add(&self.m, x, None, 1)

    def update(self, x, threads=1):
        """Add every element of `x`, whatever its shape.

        Args:
            x: a number, or anything with the buffer protocol, `__array__`, DLPack or `__float__`, or a list or tuple
                of such; torch and TensorFlow tensors included. Any real dtype and any layout; no full-size copy is
                made.
            threads: how many share a large contiguous array. The result does not depend on it, to the bit.

        Raises:
            TypeError: for complex numbers, text, dates, objects and None; the state is then as before.
            ValueError: for threads below 1.
        """
        cdef spin_moments new
        cdef double value = 0.0
        cdef int n = check_threads(threads)
        if quick_scalar(x, &value):
            with cython.critical_section(self):
                spin_moments_update(&self.m, value)
            return
        spin_moments_init(&new)
        add(&new, x, None, n)
        with cython.critical_section(self):
            spin_moments_merge(&self.m, &new)

    def merge(self, Moments other not None):
        """Add all that `other` has seen. Raises TypeError where it is no Moments."""
        cdef spin_moments copy = state_of(other)
        with cython.critical_section(self):
            spin_moments_merge(&self.m, &copy)

    def __add__(self, other):
        cdef spin_moments a, b
        if type(self) is not Moments or type(other) is not Moments:
            return NotImplemented
        a, b = state_of(self), state_of(other)
        spin_moments_merge(&a, &b)
        return moments_of(&a)

    def __iadd__(self, other):
        if type(other) is not Moments:
            return NotImplemented
        self.merge(other)
        return self

    def __eq__(self, other):
        cdef spin_moments a, b
        if type(self) is not Moments or type(other) is not Moments:
            return NotImplemented
        a, b = state_of(self), state_of(other)
        return (
            a.count == b.count and a.mean == b.mean and a.mean_low == b.mean_low and a.m2 == b.m2
            and a.min == b.min and a.max == b.max
            and a.nan_count == b.nan_count and a.posinf_count == b.posinf_count and a.neginf_count == b.neginf_count
        )

    def copy(self):
        """An independent copy."""
        cdef spin_moments m = state_of(self)
        return moments_of(&m)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        cdef spin_moments m = state_of(self)
        return _restore, (
            m.count, m.mean, m.mean_low, m.m2, m.min, m.max, m.nan_count, m.posinf_count, m.neginf_count,
        )

    def __repr__(self):
        parts = [f"count={self.count}", f"mean={self.mean!r}", f"std={self.std()!r}"]
        parts += [f"min={self.min!r}", f"max={self.max!r}"]
        for name in ("nan_count", "posinf_count", "neginf_count"):
            if getattr(self, name):
                parts.append(f"{name}={getattr(self, name)}")
        return f"Moments({', '.join(parts)})"

    def to_bytes(self):
        """The state as its 72 bytes in memory, for machines of one kind."""
        cdef spin_moments m = state_of(self)
        return (<const char *>&m)[:sizeof(spin_moments)]

    @staticmethod
    def from_bytes(data not None):
        """The Moments whose `to_bytes` this is. Raises ValueError for any other number of bytes, and TypeError for
        what has none."""
        cdef Moments new = Moments.__new__(Moments)
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if view.len != sizeof(spin_moments):
                raise ValueError(f"a state has {sizeof(spin_moments)} bytes, not {view.len}")
            memcpy(&new.m, view.buf, sizeof(spin_moments))
        finally:
            PyBuffer_Release(&view)
        return new

    @property
    def count(self):
        """How many values were seen, non-finite ones included."""
        cdef spin_moments m = state_of(self)
        return spin_moments_count(&m)

    @property
    def mean(self):
        """The mean."""
        cdef spin_moments m = state_of(self)
        return spin_moments_mean(&m)

    @property
    def m2(self):
        """The sum of squared deviations from the mean, over the finite values."""
        return self.m.m2

    @property
    def min(self):
        """The least value."""
        cdef spin_moments m = state_of(self)
        return spin_moments_min(&m)

    @property
    def max(self):
        """The greatest value."""
        cdef spin_moments m = state_of(self)
        return spin_moments_max(&m)

    @property
    def nan_count(self):
        """How many values were NaN."""
        return self.m.nan_count

    @property
    def posinf_count(self):
        """How many values were plus infinity."""
        return self.m.posinf_count

    @property
    def neginf_count(self):
        """How many values were minus infinity."""
        return self.m.neginf_count

    def variance(self, double ddof=0.0):
        """The variance with divisor count - ddof; NaN where that is not positive."""
        cdef spin_moments m = state_of(self)
        return spin_moments_variance(&m, ddof)

    def std(self, double ddof=0.0):
        """The standard deviation with divisor count - ddof: of one value 0.0, of equal values 0.0 exactly."""
        cdef spin_moments m = state_of(self)
        return spin_moments_std(&m, ddof)


def _restore(*parts):
    """The Moments of a pickled state."""
    cdef Moments new = Moments.__new__(Moments)
    set_state(&new.m, parts)
    return new


def moments(x, threads=1):
    """The `Moments` of all elements of `x` in one call.

    Args:
        x: numbers, as for `Moments.update`.
        threads: how many share a large contiguous array. The result does not depend on it, to the bit.

    Raises:
        TypeError, ValueError: as `Moments.update`.

    Examples:
        >>> import numpy as np
        >>> from spinstat import moments
        >>> moments([[1, 2], [3, 6]]).mean
        3.0
        >>> moments(np.full((100, 100), 1e9, dtype=np.float32), threads=2)
        Moments(count=10000, mean=1000000000.0, std=0.0, min=1000000000.0, max=1000000000.0)
    """
    cdef Moments new = Moments.__new__(Moments)
    add(&new.m, x, None, check_threads(threads))
    return new
