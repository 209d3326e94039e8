# Rows of messages between ranks: packed from Moments, merged by whatever reduces them, unpacked again. The protocol
# that uses them is exchange.py; what a row is and how two become one stands in csrc/rows.h. Included by _core.pyx.

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE, PyBytes_FromStringAndSize
from libc.math cimport NAN
from libc.stdint cimport int32_t, uint64_t

cdef extern from "rows.h" nogil:
    ctypedef struct spin_key_row:
        spin_moments moments
        double least_mean
        double greatest_mean
        int32_t least_rank
        int32_t greatest_rank

    ctypedef union spin_row_body:
        spin_key_row key

    ctypedef struct spin_row:
        int32_t ranks
        spin_row_body body

    enum:
        SPIN_ROUND_KEYS
        SPIN_MESSAGE_ROWS

    uint64_t spin_hash(uint64_t seed, const void *data, size_t n)
    void spin_rows_clear(spin_row *rows, size_t n)
    void spin_row_header(spin_row *row, uint64_t hash, int64_t keys)
    void spin_row_key(spin_row *row, uint64_t hash, const spin_moments *m, int32_t rank)
    void spin_rows_merge(const spin_row *lower, spin_row *higher, size_t n)
    bint spin_rows_agree(const spin_row *rows, size_t keys)


ROW_SIZE = sizeof(spin_row)
ROUND_KEYS = SPIN_ROUND_KEYS


def merge_rows(lower, higher, datatype=None):
    """Merge whole rows of lower ranks into as many rows of higher ranks: the reduction operation.

    Args:
        lower: a buffer of n rows, left as it is.
        higher: a writable buffer of n rows of higher ranks than `lower`; holds both together afterwards.
        datatype: unused; MPI hands its datatype to every operation.

    Raises:
        ValueError: the buffers are not of equal size, or not of whole rows.
    """
    cdef Py_buffer source, target
    PyObject_GetBuffer(lower, &source, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(higher, &target, PyBUF_WRITABLE)
        try:
            if source.len != target.len or source.len % <Py_ssize_t>sizeof(spin_row):
                raise ValueError(
                    f"{source.len} and {target.len} bytes are not two times the same number of rows of {ROW_SIZE} bytes"
                )
            spin_rows_merge(<const spin_row *>source.buf, <spin_row *>target.buf, source.len // sizeof(spin_row))
        finally:
            PyBuffer_Release(&target)
    finally:
        PyBuffer_Release(&source)


cdef extern from "Python.h":
    void *PyUnicode_DATA(object text)


cdef uint64_t hash_text(uint64_t seed, str text) except? 0:
    cdef bytes utf8
    if text.isascii():
        return spin_hash(seed, PyUnicode_DATA(text), len(text))
    utf8 = text.encode("utf-8", "surrogatepass")  # a key may hold a lone surrogate as any other character
    return spin_hash(seed, PyBytes_AS_STRING(utf8), PyBytes_GET_SIZE(utf8))


cdef class RowInfo:
    """How the ranks contributed to one statistic. Compares by value.

    Attributes:
        count: values of all ranks, non-finite ones included.
        nan_count: how many of them are NaN.
        ranks_with_values: ranks that stored any value.
        min_mean, max_mean: the least and the greatest mean that a rank had on its own, both NaN as soon as one rank's
            mean is NaN, and where no rank has values.
        min_mean_rank, max_mean_rank: whose they are, the lowest rank where several are equal; None where no rank has
            values.

    Examples:
        >>> from spinstat import EpochLogger
        >>> logger = EpochLogger("run", quiet=True)
        >>> logger.store(EpRet=[1.0, float("nan")])
        >>> logger.log_tabular("EpRet")
        >>> info = logger.last_row_info["EpRet"]
        >>> info.count, info.nan_count, info.ranks_with_values, info.max_mean_rank
        (2, 1, 1, 0)
    """
    cdef spin_row row

    @property
    def count(self):
        return spin_moments_count(&self.row.body.key.moments)

    @property
    def nan_count(self):
        return self.row.body.key.moments.nan_count

    @property
    def ranks_with_values(self):
        return self.row.ranks

    @property
    def min_mean(self):
        return self.row.body.key.least_mean if self.row.ranks else NAN

    @property
    def min_mean_rank(self):
        return self.row.body.key.least_rank if self.row.ranks else None

    @property
    def max_mean(self):
        return self.row.body.key.greatest_mean if self.row.ranks else NAN

    @property
    def max_mean_rank(self):
        return self.row.body.key.greatest_rank if self.row.ranks else None

    def _as_tuple(self):
        return (self.count, self.nan_count, self.ranks_with_values,
                self.min_mean, self.min_mean_rank, self.max_mean, self.max_mean_rank)

    def __eq__(self, other):
        if not isinstance(other, RowInfo):
            return NotImplemented
        return repr(self) == repr(other)  # as text, since NaN is to equal NaN here

    __hash__ = None

    def __repr__(self):
        return ("RowInfo(count=%r, nan_count=%r, ranks_with_values=%r, min_mean=%r, min_mean_rank=%r, "
                "max_mean=%r, max_mean_rank=%r)" % self._as_tuple())

    def __reduce__(self):
        return _row_info, (PyBytes_FromStringAndSize(<const char *>&self.row, sizeof(spin_row)),)


def _row_info(bytes data not None):
    """The RowInfo of a pickle."""
    cdef RowInfo info = RowInfo.__new__(RowInfo)
    if len(data) != sizeof(spin_row):
        raise ValueError(f"a pickled RowInfo holds {sizeof(spin_row)} bytes, not {len(data)}")
    memcpy(&info.row, PyBytes_AS_STRING(data), sizeof(spin_row))
    return info


cdef class Result:
    """What a reduction gives for one key.

    Attributes:
        moments: the Moments of the values of all ranks, the same bits on each.
        info: a RowInfo, how the ranks contributed.
    """
    cdef readonly Moments moments
    cdef readonly RowInfo info


cdef Result make_result(spin_row *row):
    cdef Result result = Result.__new__(Result)
    result.moments = moments_of(&row.body.key.moments)
    result.info = RowInfo.__new__(RowInfo)
    result.info.row = row[0]
    return result


def own_results(items):
    """The Results of (key, Moments) pairs where there is one rank only: nothing is sent."""
    cdef spin_row row
    results = []
    for _, moments in items:
        spin_row_key(&row, 0, &(<Moments?>moments).m, 0)
        results.append(make_result(&row))
    return results


cdef class Message:
    """A header row and ROUND_KEYS key rows, as a writable buffer of bytes: what ranks send one another."""
    cdef spin_row rows[SPIN_MESSAGE_ROWS]

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.rows, sizeof(self.rows), 0, flags)

    def pack(self, list items not None, Py_ssize_t start, int64_t logger, int64_t row, str purpose not None, int rank):
        """Fill in one round of a call.

        Args:
            items: (key, Moments) pairs of the whole call.
            start: the first of them to go into this message, a multiple of ROUND_KEYS.
            logger, row, purpose: what the call is: number of the logger, number of the row, what it is done for.
            rank: the rank that sends.
        """
        cdef Py_ssize_t keys, i
        cdef int64_t place[3]
        cdef uint64_t call, hash, all_hashes
        if not 0 <= start <= len(items):
            raise ValueError(f"a call with {len(items)} keys has no round that begins with key {start}")
        keys = min(len(items) - start, <Py_ssize_t>SPIN_ROUND_KEYS)
        place[0], place[1], place[2] = logger, row, start
        call = hash_text(spin_hash(0, place, sizeof(place)), purpose)
        all_hashes = call
        for i in range(keys):
            key, moments = items[start + i]
            hash = hash_text(call, <str?>key)
            all_hashes = spin_hash(all_hashes, &hash, sizeof(hash))
            spin_row_key(&self.rows[1 + i], hash, &(<Moments?>moments).m, rank)
        spin_rows_clear(&self.rows[1 + keys], SPIN_ROUND_KEYS - keys)
        spin_row_header(&self.rows[0], all_hashes, len(items))

    def agrees(self, Py_ssize_t keys):
        """Whether all ranks sent this round of the same call; `keys` is the number of its keys here."""
        return spin_rows_agree(self.rows, keys)

    def results(self, Py_ssize_t keys):
        """The Results of the first keys of a merged message."""
        if not 0 <= keys <= SPIN_ROUND_KEYS:
            raise ValueError(f"a message holds up to {ROUND_KEYS} keys, not {keys}")
        return [make_result(&self.rows[1 + i]) for i in range(keys)]
