# A list's view of the values that are stored under a key.

from cpython.bytes cimport PyBytes_FromStringAndSize

cdef extern from "Python.h":
    int PySlice_Unpack(object slice, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t step)
    Py_ssize_t PyNumber_AsSsize_t(object index, object overflow) except? -1


cdef enum:
    EDIT_TRIES = 100  # where others edit the same list at the same time


cdef bytes bytes_of(const double *data, Py_ssize_t n):
    """A copy of n doubles."""
    return PyBytes_FromStringAndSize(<const char *>data, n * <Py_ssize_t>sizeof(double))


cdef bint is_list(object x):
    return isinstance(x, (list, StoredValues))


cdef list as_list(object x):
    """A new list of what an iterable gives."""
    return (<StoredValues>x).to_list() if isinstance(x, StoredValues) else list(x)


@cython.final
@cython.collection_type("sequence")
cdef class StoredValues(Values):
    """The values stored under one key, as a list: floats, and arrays where arrays were stored.

    Everything that a list does works. Appending adds to the statistics; any other change makes them anew from
    the values. Tensors on a GPU are in the statistics, but not in the list.
    """
    __hash__ = None

    def __init__(self, values=()):
        self.extend(values)

    cdef list to_list(self):
        cdef list out = []
        with cython.critical_section(self.lock):
            self.write(out)
        return out

    def _parts(self):
        """The values in order: float64 arrays of scalars that came one after the other, all else as it is."""
        cdef list parts
        cdef bytes tail
        cdef Py_ssize_t i
        with cython.critical_section(self.lock):
            parts = list(self.segments)
            tail = bytes_of(self.tail.cells.block, self.tail.cells.filled)
        for i in range(len(parts)):  # blocks no longer change
            if type(parts[i]) is Block:
                parts[i] = np.frombuffer(bytes_of((<Block>parts[i]).data, (<Block>parts[i]).n))
        parts.append(np.frombuffer(tail))
        return parts

    def __len__(self):
        with cython.critical_section(self.lock):
            return self.length()

    def __getitem__(self, index):
        cdef Py_ssize_t i, n, start = 0, stop = 0, step = 1
        cdef list out
        if isinstance(index, slice):
            PySlice_Unpack(index, &start, &stop, &step)
            out = []
            with cython.critical_section(self.lock):
                n = PySlice_AdjustIndices(self.length(), &start, &stop, step)
                for i in range(n):
                    out.append(self.at(start + i * step))
            return out
        i = PyNumber_AsSsize_t(index, IndexError)
        with cython.critical_section(self.lock):
            return self.at(i + self.length() if i < 0 else i)

    def __iter__(self):
        cdef Py_ssize_t i = 0
        while i < len(self):
            try:
                value = self[i]
            except IndexError:  # another thread has made the list shorter
                return
            yield value
            i += 1

    def __array__(self, dtype=None, copy=None):
        """All values as one array: float64 of shape (len,) where all are scalars."""
        cdef Py_buffer view
        cdef bint copied
        if copy is False:
            raise ValueError("the values lie in blocks: one array of them is always a copy")
        array = np.empty(len(self))
        PyObject_GetBuffer(array, &view, PyBUF_WRITABLE)
        with cython.critical_section(self.lock):
            copied = self.copy_scalars(<double *>view.buf, view.len // <Py_ssize_t>sizeof(double))
        PyBuffer_Release(&view)
        if not copied:
            return np.array(self.to_list(), dtype=dtype)
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self):
        return repr(self.to_list())

    def __eq__(self, other):
        if other is self:
            return True  # as a list, whatever NaNs are in it
        return self.to_list() == as_list(other) if is_list(other) else NotImplemented

    def __lt__(self, other):
        return self.to_list() < as_list(other) if is_list(other) else NotImplemented

    def __le__(self, other):
        return self.to_list() <= as_list(other) if is_list(other) else NotImplemented

    def __gt__(self, other):
        return self.to_list() > as_list(other) if is_list(other) else NotImplemented

    def __ge__(self, other):
        return self.to_list() >= as_list(other) if is_list(other) else NotImplemented

    def __add__(self, other):
        return self.to_list() + as_list(other) if is_list(other) else NotImplemented

    def __radd__(self, other):
        return as_list(other) + self.to_list() if is_list(other) else NotImplemented

    def __mul__(self, n):
        return self.to_list() * n

    def __rmul__(self, n):
        return n * self.to_list()

    def __reduce__(self):
        return list, (self.to_list(),)

    def __copy__(self):
        return self.to_list()

    def __deepcopy__(self, memo):
        from copy import deepcopy
        return deepcopy(self.to_list(), memo)

    def copy(self):
        """A plain list of the values."""
        return self.to_list()

    def index(self, value, *bounds):
        """The index of the first value equal to `value`. Raises ValueError where there is none."""
        return self.to_list().index(value, *bounds)

    def count(self, value):
        """How many values are equal to `value`."""
        return self.to_list().count(value)

    # Changing -----------------------------------------------------------------------------------------------

    cdef int take(self, object x) except -1:
        """Convert and add one value, or raise and change nothing."""
        cdef Converted value
        cdef list states = []
        x = convert_kept(x, self.key, &value, states)
        self.make_room_on_device()
        with cython.critical_section(self.lock):
            self.push_converted(x, &value)
            self.device.extend(states)
        return 0

    cdef StoredValues taken(self, list given):
        """New values of the same key. Raises TypeError for what is no real number."""
        cdef StoredValues new = new_values(self.key, self.lock, self.keep)
        for value in given:
            new.take(value)
        return new

    def append(self, value):
        """Add one value. Raises TypeError, and adds nothing, where it is no real number."""
        self.take(value)

    def extend(self, values):
        """Add each of `values`, or raise and add none."""
        cdef StoredValues new = self.taken(as_list(values))
        cdef Cells *cells
        cdef Py_ssize_t i, start, before
        with cython.critical_section(self.lock):
            if new.segments or self.tail.cells.filled + new.tail.cells.filled > BLOCK_CAPACITY:
                self.close_block()
                start, before = self.length(), len(self.segments)
                try:
                    for i in range(len(new.segments)):
                        self.add_segment(new.segments[i], start + <Py_ssize_t>new.starts[i])
                    self.device.extend(new.device)
                except BaseException:
                    while len(self.segments) > before:
                        self.segments.pop()
                        self.starts.pop()
                    raise
                spin_moments_merge(&self.folded, &new.folded)
                self.tail.cells, new.tail.cells = new.tail.cells, self.tail.cells
            else:
                cells = &self.tail.cells
                while cells.capacity < cells.filled + new.tail.cells.filled:
                    grow(cells)
                self.device.extend(new.device)
                if new.tail.cells.filled:  # or there may be no blocks
                    start, i = cells.filled, new.tail.cells.filled
                    memcpy(cells.block + start, new.tail.cells.block, i * sizeof(double))
                    cells.filled = start + i

    def __iadd__(self, values):
        self.extend(values)
        return self

    cdef object edit(self, change, tuple arguments, bint all=False):
        """Call a method of list on the values and hold what they are then, or raise and change nothing.
        `all`: what is not in the list goes, too."""
        cdef Py_ssize_t edits, before
        cdef list values
        for _ in range(EDIT_TRIES):
            edits = self.edits
            values = self.to_list()
            before = len(values)
            result = change(values, *arguments)
            if self.replace(self.taken(values), edits, before, all):
                return result
        raise RuntimeError("the list is changed each time while it is being edited")

    cdef bint replace(self, StoredValues new, Py_ssize_t edits, Py_ssize_t before, bint all) except -1:
        """Hold the values of `new` instead, and what other threads have appended since there were `before` of
        them. False where they have edited the list since."""
        cdef object appended = None
        while True:
            with cython.critical_section(self.lock):
                if self.edits != edits:
                    return False
                if self.length() == before:
                    if all and (self.device or new.device):  # first, as it may fail
                        self.device[:] = new.device
                    elif new.device:
                        self.device.extend(new.device)
                    self.edits += 1
                    self.folded = new.folded
                    self.tail.cells, new.tail.cells = new.tail.cells, self.tail.cells
                    self.segments, new.segments = new.segments, self.segments
                    self.starts, new.starts = new.starts, self.starts
                    if all:
                        spin_moments_init(&self.fetched)
                    return True
                appended = self.at(before)
            new.take(appended)
            before += 1

    def __setitem__(self, index, value):
        if isinstance(value, StoredValues):
            value = as_list(value)
        self.edit(list.__setitem__, (index, value), is_all(index))

    def __delitem__(self, index):
        self.edit(list.__delitem__, (index,), is_all(index))

    def __imul__(self, n):
        self.edit(list.__imul__, (n,))
        return self

    def insert(self, index, value):
        """Put `value` before the one at `index`."""
        self.edit(list.insert, (index, value))

    def pop(self, index=-1):
        """Take out and return the value at `index`. Raises IndexError where there is none."""
        return self.edit(list.pop, (index,))

    def remove(self, value):
        """Take out the first value equal to `value`. Raises ValueError where there is none."""
        self.edit(list.remove, (value,))

    def clear(self):
        """Take out all values; tensors on a GPU too."""
        self.edit(list.clear, (), True)

    def reverse(self):
        """Turn the order around."""
        self.edit(list.reverse, ())

    def sort(self, *, key=None, reverse=False):
        """Sort in place."""
        self.edit(lambda values: values.sort(key=key, reverse=reverse), ())


MutableSequence.register(StoredValues)


cdef bint is_all(object index):
    """Whether an index is that of v[:]."""
    return isinstance(index, slice) and index.start is None and index.stop is None and index.step is None


cdef StoredValues new_values(str key, Lock lock, bint keep):
    cdef StoredValues values = StoredValues.__new__(StoredValues)
    values.key, values.lock, values.keep = key, lock, keep
    return values
