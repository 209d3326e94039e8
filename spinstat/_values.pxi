# What was stored under one key since it was last logged. The values live once: scalars in blocks of float64, anything
# else by reference, in the order in which they came; StoredValues is a list's view of them.

cdef enum:
    FIRST_CAPACITY = 32
    BLOCK_CAPACITY = 8192  # values between two runs of the bulk kernel
    SPARE_BLOCKS = 256     # 16 MiB at most
    DEVICE_PENDING = 64    # states of GPU tensors before they are merged, on the GPU


cdef extern from *:
    """
    /* Guards the spare blocks; nothing to do where there is a GIL. */
    #ifdef Py_GIL_DISABLED
    static PyMutex spin_spare_mutex;
    #define SPIN_SPARE_LOCK() PyMutex_Lock(&spin_spare_mutex)
    #define SPIN_SPARE_UNLOCK() PyMutex_Unlock(&spin_spare_mutex)
    #else
    #define SPIN_SPARE_LOCK() (void)0
    #define SPIN_SPARE_UNLOCK() (void)0
    #endif
    """
    void SPIN_SPARE_LOCK() noexcept
    void SPIN_SPARE_UNLOCK() noexcept

# Blocks of full size that nobody uses. Each epoch fills about as many as the one before, and memory that has gone back
# to the system costs a page fault for every 512 values: more than storing them.
cdef double *spare[SPARE_BLOCKS]
cdef Py_ssize_t spares = 0


cdef double *new_block() except NULL:
    """A block of BLOCK_CAPACITY."""
    global spares
    cdef double *block = NULL
    SPIN_SPARE_LOCK()
    if spares > 0:
        spares -= 1
        block = spare[spares]
    SPIN_SPARE_UNLOCK()
    if block == NULL:
        block = <double *>PyMem_RawMalloc(BLOCK_CAPACITY * sizeof(double))
        if block == NULL:
            raise MemoryError()
    return block


cdef void free_block(double *block, Py_ssize_t capacity) noexcept:
    """Give up a block, of any capacity; NULL is none."""
    global spares
    if capacity == BLOCK_CAPACITY and block != NULL:
        SPIN_SPARE_LOCK()
        if spares < SPARE_BLOCKS:
            spare[spares] = block
            spares += 1
            block = NULL
        SPIN_SPARE_UNLOCK()
    PyMem_RawFree(block)


@cython.final
cdef class Block:
    """Scalars that no longer change."""
    cdef double *data
    cdef Py_ssize_t n

    def __dealloc__(self):
        free_block(self.data, self.n)  # a block closed before it was full has just its size


cdef struct Cells:
    # Scalars whose moments are not taken yet: the current block. Full, or absent, where filled is capacity.
    double *block
    Py_ssize_t filled
    Py_ssize_t capacity


@cython.final
cdef class Tail:
    """The cells that a key's scalars are appended to. Its address stays while the key lives, so that a call site can
    go straight to it; what is in the cells goes to whoever holds the values when the key is logged."""
    cdef Cells cells

    def __dealloc__(self):
        free_block(self.cells.block, self.cells.capacity)


@cython.final
cdef class StoredValues:
    """The values stored under one key, as a list: floats, and arrays where arrays were stored.

    Everything that a list does works. Appending adds to the statistics; any other change makes them anew.
    """
    cdef spin_moments folded  # of all but the values in the current block
    cdef Tail tail            # the current block; shared with the slot of the key while that holds these values
    cdef bint keep
    cdef list segments        # Blocks, and references to what else was stored
    cdef list starts          # the index of each segment's first value
    cdef list device          # states of tensors, on their devices
    cdef object foreign       # a list that the caller assigned and keeps, instead of all of the above
    cdef object __weakref__

    __hash__ = None

    def __cinit__(self):
        spin_moments_init(&self.folded)
        self.keep = True
        self.tail = Tail.__new__(Tail)
        self.segments = []
        self.starts = []

    # Adding ---------------------------------------------------------------------------------------------------------

    cdef int make_room(self) except -1:
        """Let one more scalar fit into the current block."""
        cdef Cells *cells = &self.tail.cells
        cdef Py_ssize_t wanted
        cdef double *larger
        if cells.filled < cells.capacity:
            return 0
        if cells.capacity < BLOCK_CAPACITY:
            wanted = max(<Py_ssize_t>FIRST_CAPACITY, 2 * cells.capacity)
            if wanted >= BLOCK_CAPACITY:
                wanted = BLOCK_CAPACITY
                larger = new_block()
                memcpy(larger, cells.block, cells.filled * sizeof(double))
                PyMem_RawFree(cells.block)
            else:
                larger = <double *>PyMem_RawRealloc(cells.block, wanted * sizeof(double))
                if larger == NULL:
                    raise MemoryError()
            cells.block, cells.capacity = larger, wanted
        elif self.keep:
            larger = new_block()
            try:
                self.close_block()
            except BaseException:
                free_block(larger, BLOCK_CAPACITY)
                raise
            cells.block, cells.capacity = larger, BLOCK_CAPACITY
        else:
            spin_moments_reduce(&self.folded, cells.block, cells.filled, SPIN_FLOAT64)
            cells.filled = 0
        return 0

    cdef int close_block(self) except -1:
        """Move the current block, which must not be empty, to the segments."""
        cdef Cells *cells = &self.tail.cells
        cdef Block closed = Block.__new__(Block)
        cdef double *exact
        cdef Py_ssize_t start = self.length() - cells.filled
        self.starts.append(start)
        try:
            self.segments.append(closed)
        except BaseException:
            self.starts.pop()
            raise
        spin_moments_reduce(&self.folded, cells.block, cells.filled, SPIN_FLOAT64)
        if cells.filled < cells.capacity:
            exact = <double *>PyMem_RawRealloc(cells.block, cells.filled * sizeof(double))
            if exact != NULL:
                cells.block = exact
        closed.data, closed.n = cells.block, cells.filled
        cells.block, cells.filled, cells.capacity = NULL, 0, 0
        return 0

    cdef int push(self, double x) except -1:
        """Add one scalar."""
        self.make_room()
        self.tail.cells.block[self.tail.cells.filled] = x
        self.tail.cells.filled += 1
        return 0

    cdef int push_many(self, object x, const spin_moments *m) except -1:
        """Add an array's moments, and a reference to it where values are kept."""
        cdef Py_ssize_t at
        if self.keep:
            if self.tail.cells.filled:
                self.close_block()
            at = self.length()
            self.segments.append(x)
            self.starts.append(at)
        spin_moments_merge(&self.folded, m)
        return 0

    cdef int push_device(self, object state) except -1:
        """Add a tensor's state, which stays on its device."""
        if self.device is None:
            self.device = []
        self.device.append(state)
        if len(self.device) >= DEVICE_PENDING and all(s.device == state.device for s in self.device):
            self.device = [_arrays.merge_on_device(self.device)]
        return 0

    cdef int take_value(self, object x, str key) except -1:
        """Convert and add one value, or raise and change nothing."""
        cdef Converted value
        convert(x, key, &value, 0, 1)
        if value.kind == DEVICE:
            self.push_device(_arrays.device_moments(_arrays.detached(x, key)))
        elif value.kind == SCALAR:
            self.push(value.value)
        else:
            self.push_many(_arrays.detached(x, key) if is_tensor(x) else x, &value.moments)
        return 0

    # Statistics -----------------------------------------------------------------------------------------------------

    cdef int read(self, spin_moments *m, str key) except -1:
        """The moments of all values. Device states must have been fetched."""
        cdef Converted value
        if self.foreign is not None:
            # A list, or whatever sequence of values the caller assigned.
            convert(self.foreign if isinstance(self.foreign, (list, tuple, np.ndarray)) else list(self.foreign),
                    key, &value, 0, 1)
            if value.kind == SCALAR:
                spin_moments_init(m)
                spin_moments_update(m, value.value)
            else:
                m[0] = value.moments
            return 0
        m[0] = self.folded
        spin_moments_reduce(m, self.tail.cells.block, self.tail.cells.filled, SPIN_FLOAT64)
        return 0

    # Reading as a list ----------------------------------------------------------------------------------------------

    cdef Py_ssize_t length(self):
        cdef Py_ssize_t segments = len(self.segments)
        if segments == 0:
            return self.tail.cells.filled
        last = self.segments[segments - 1]
        return self.tail.cells.filled + <Py_ssize_t>self.starts[segments - 1] + ((<Block>last).n if type(last) is Block else 1)

    cdef object at(self, Py_ssize_t i):
        cdef Py_ssize_t in_segments = self.length() - self.tail.cells.filled
        cdef Py_ssize_t low = 0, high = len(self.segments), middle
        if i >= in_segments:
            return self.tail.cells.block[i - in_segments]
        while high - low > 1:
            middle = (low + high) // 2
            if <Py_ssize_t>self.starts[middle] <= i:
                low = middle
            else:
                high = middle
        segment = self.segments[low]
        if type(segment) is Block:
            return (<Block>segment).data[i - <Py_ssize_t>self.starts[low]]
        return segment

    def __len__(self):
        return self.length()

    def __getitem__(self, index):
        cdef Py_ssize_t i, n = self.length()
        if isinstance(index, slice):
            return [self.at(i) for i in range(*index.indices(n))]
        i = index.__index__()
        if i < 0:
            i += n
        if i < 0 or i >= n:
            raise IndexError("list index out of range")
        return self.at(i)

    def __iter__(self):
        cdef Py_ssize_t i = 0
        while i < self.length():
            yield self.at(i)
            i += 1

    def __array__(self, dtype=None, copy=None):
        """All values as one array: float64 of shape (len,) where all are scalars."""
        cdef double[::1] out
        cdef Py_ssize_t at = 0
        if copy is False:
            raise ValueError("the values lie in blocks: one array of them is always a copy")
        for segment in self.segments:
            if type(segment) is not Block:
                return np.array(list(self), dtype=dtype)
        array = np.empty(self.length())
        out = array
        for segment in self.segments:
            memcpy(&out[at], (<Block>segment).data, (<Block>segment).n * sizeof(double))
            at += (<Block>segment).n
        if self.tail.cells.filled:
            memcpy(&out[at], self.tail.cells.block, self.tail.cells.filled * sizeof(double))
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self):
        return repr(list(self))

    def __eq__(self, other):
        if isinstance(other, StoredValues):
            other = list(other)
        return list(self) == other if isinstance(other, list) else NotImplemented

    def __lt__(self, other):
        return list(self) < list(other)

    def __le__(self, other):
        return list(self) <= list(other)

    def __gt__(self, other):
        return list(self) > list(other)

    def __ge__(self, other):
        return list(self) >= list(other)

    def __add__(self, other):
        return list(self) + list(other)

    def __radd__(self, other):
        return list(other) + list(self)

    def __mul__(self, n):
        return list(self) * n

    def __rmul__(self, n):
        return list(self) * n

    def __reduce__(self):
        return list, (list(self),)

    def __copy__(self):
        return list(self)

    def __deepcopy__(self, memo):
        from copy import deepcopy
        return deepcopy(list(self), memo)

    def copy(self):
        """A plain list of the values."""
        return list(self)

    # Changing -------------------------------------------------------------------------------------------------------

    cdef int replace(self, list values) except -1:
        """Hold these values instead, or raise and change nothing."""
        cdef StoredValues new = StoredValues.__new__(StoredValues)
        new.keep = self.keep
        for value in values:
            new.take_value(value, None)
        self.folded = new.folded
        self.tail.cells, new.tail.cells = new.tail.cells, self.tail.cells
        self.segments, self.starts, self.device = new.segments, new.starts, new.device
        return 0

    def append(self, value):
        """Add one value: to the list and to the statistics."""
        self.take_value(value, None)

    def extend(self, values):
        """Add each of `values`."""
        for value in list(values):
            self.take_value(value, None)

    def __iadd__(self, values):
        self.extend(values)
        return self

    def __setitem__(self, index, value):
        values = list(self)
        values[index] = value
        self.replace(values)

    def __delitem__(self, index):
        values = list(self)
        del values[index]
        self.replace(values)

    def insert(self, index, value):
        """Put `value` before the one at `index`."""
        values = list(self)
        values.insert(index, value)
        self.replace(values)

    def pop(self, index=-1):
        """Take out and return the value at `index`. Raises IndexError where there is none."""
        values = list(self)
        value = values.pop(index)
        self.replace(values)
        return value

    def remove(self, value):
        """Take out the first value equal to `value`. Raises ValueError where there is none."""
        values = list(self)
        values.remove(value)
        self.replace(values)

    def clear(self):
        """Take out all values."""
        self.replace([])

    def reverse(self):
        """Turn the order around."""
        self.replace(list(self)[::-1])

    def sort(self, *, key=None, reverse=False):
        """Sort in place."""
        self.replace(sorted(self, key=key, reverse=reverse))

    def index(self, value, *bounds):
        """The index of the first value equal to `value`. Raises ValueError where there is none."""
        return list(self).index(value, *bounds)

    def count(self, value):
        """How many values are equal to `value`."""
        return list(self).count(value)


MutableSequence.register(StoredValues)
