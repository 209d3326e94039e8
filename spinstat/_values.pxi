# What was stored under one key since it was last logged. The values live once: scalars in blocks of float64,
# anything else by reference, in the order in which they came.
#
# Threads and re-entrant calls are kept apart by two rules. Where state changes in several steps, nothing
# between them may run other code: nothing that converts or compares values, drops the last reference to one,
# calls torch, or makes an object that the garbage collector tracks. And the steps are taken under the lock,
# which is nothing where there is a GIL.

cdef enum:
    DEVICE_PENDING = 64  # states of GPU tensors before they are merged, on the GPU


@cython.final
cdef class Lock:
    """What threads without a GIL take turns on: one for a store and all values that came from it."""


cdef class Values:
    """The statistics of one key, and its values where they are kept. StoredValues shows them as a list."""
    cdef spin_moments folded   # of all values in the segments
    cdef spin_moments fetched  # of the tensors whose states came over from their devices
    cdef Tail tail             # the current block; shared with the key's slot while that holds these values
    cdef Lock lock
    cdef str key               # for errors; None where there is none
    cdef bint keep
    cdef Py_ssize_t edits      # changes other than appending
    cdef list segments         # Blocks, and references to what else was stored
    cdef list starts           # the index of each segment's first value
    cdef list device           # states of tensors, on their devices; always the same list
    cdef object foreign        # a list that the caller assigned and keeps, instead of segments and tail
    cdef object __weakref__

    def __cinit__(self):
        spin_moments_init(&self.folded)
        spin_moments_init(&self.fetched)
        self.keep = True
        self.lock = Lock.__new__(Lock)
        self.tail = Tail.__new__(Tail)
        self.segments = []
        self.starts = []
        self.device = []

    # Adding; the caller holds the lock ----------------------------------------------------------------------

    cdef int make_room(self) except -1:
        """Let one more scalar fit into the current block."""
        cdef Cells *cells = &self.tail.cells
        cdef double *another
        if cells.filled < cells.capacity:
            return 0
        if cells.capacity < BLOCK_CAPACITY:
            return grow(cells)
        if not self.keep:
            spin_moments_reduce(&self.folded, cells.block, cells.filled, SPIN_FLOAT64)
            cells.filled = 0
            return 0
        another = new_block()
        try:
            self.close_block()
        except BaseException:
            free_block(another, BLOCK_CAPACITY)
            raise
        cells.block, cells.capacity = another, BLOCK_CAPACITY
        return 0

    cdef int close_block(self) except -1:
        """Move the current block to the segments, where there is anything in it."""
        cdef Cells *cells = &self.tail.cells
        cdef Block closed
        if cells.filled == 0:
            return 0
        closed = Block.__new__(Block)
        self.add_segment(closed, self.length() - cells.filled)
        spin_moments_reduce(&self.folded, cells.block, cells.filled, SPIN_FLOAT64)
        closed.take(cells)
        return 0

    cdef int add_segment(self, object segment, Py_ssize_t start) except -1:
        self.starts.append(start)
        try:
            self.segments.append(segment)
        except BaseException:
            self.starts.pop()
            raise
        return 0

    cdef int push(self, double x) except -1:
        """Add one scalar."""
        self.make_room()
        self.tail.cells.block[self.tail.cells.filled] = x
        self.tail.cells.filled += 1
        return 0

    cdef int push_many(self, object x, const spin_moments *m) except -1:
        """Add an array's moments, and a reference to it where values are kept."""
        self.refer_to(x)
        spin_moments_merge(&self.folded, m)
        return 0

    cdef int refer_to(self, object x) except -1:
        """Hold a reference to an array where values are kept. Its moments are to be merged in the next step."""
        if self.keep:
            self.close_block()
            self.add_segment(x, self.length())
        return 0

    cdef int drop_last_reference(self, object x) except -1:
        """Undo refer_to."""
        cdef Py_ssize_t last = len(self.segments) - 1
        if self.keep and last >= 0 and self.segments[last] is x:
            self.segments.pop()
            self.starts.pop()
        return 0

    cdef int drop_last_states(self, Py_ssize_t n) except -1:
        """Forget the last n states that pend, where there are so many."""
        while n > 0 and self.device:
            self.device.pop()
            n -= 1
        return 0

    cdef int push_converted(self, object x, const Converted *value) except -1:
        """Add what convert_kept gave, but for the states of tensors on devices."""
        if value.kind == SCALAR:
            self.push(value.value)
        elif value.kind == MANY:
            self.push_many(x, &value.moments)
        return 0

    cdef Values end(self):
        """These values, or the ones that were assigned in their place."""
        return self.foreign if isinstance(self.foreign, Values) else self

    # Tensors on devices -------------------------------------------------------------------------------------

    cdef int make_room_on_device(self) except -1:
        """Merge pending states, on their devices, where there are many."""
        cdef list states, merged
        if len(self.device) >= DEVICE_PENDING:
            states = list(self.device)
            merged = _arrays.merge_by_device(states)
            with cython.critical_section(self.lock):
                if self.still_pending(states):
                    self.device[:len(states)] = merged
        return 0

    cdef int fetch(self) except -1:
        """Bring the states of tensors over from their devices."""
        cdef list states
        while self.device:
            states = list(self.device)
            self.add_fetched(states, _arrays.fetch(states))
        return 0

    cdef int add_fetched(self, list states, list numbers) except -1:
        """Add the numbers of these pending states, which pend no longer."""
        cdef spin_moments all, one
        spin_moments_init(&all)
        for parts in numbers:
            set_state(&one, parts)
            spin_moments_merge(&all, &one)
        with cython.critical_section(self.lock):
            if self.still_pending(states):
                spin_moments_merge(&self.fetched, &all)
                self.device[:len(states)] = []
        return 0

    cdef bint still_pending(self, list states):
        """Whether these states, the oldest when they were read, have not been merged or fetched meanwhile."""
        cdef Py_ssize_t i
        if len(self.device) < len(states):
            return False
        for i in range(len(states)):
            if self.device[i] is not states[i]:
                return False
        return True

    # Reading; the caller holds the lock ---------------------------------------------------------------------

    cdef int read(self, spin_moments *m) except -1:
        """The moments of all values."""
        cdef Values other
        cdef object foreign
        self.fetch()
        foreign = self.foreign
        if foreign is None:
            m[0] = self.folded
            spin_moments_reduce(m, self.tail.cells.block, self.tail.cells.filled, SPIN_FLOAT64)
        elif isinstance(foreign, Values):
            other = foreign
            with cython.critical_section(other.lock):
                other.read(m)
        else:
            moments_of_list(foreign, self.key, m)
        spin_moments_merge(m, &self.fetched)
        return 0

    cdef Py_ssize_t length(self):
        cdef Py_ssize_t last = len(self.segments) - 1
        if last < 0:
            return self.tail.cells.filled
        segment = self.segments[last]
        return (<Py_ssize_t>self.starts[last] + ((<Block>segment).n if type(segment) is Block else 1)
                + self.tail.cells.filled)

    cdef object at(self, Py_ssize_t i):
        """The value at an index from 0 up. Raises IndexError where there is none."""
        cdef Py_ssize_t n = self.length(), in_segments = n - self.tail.cells.filled
        cdef Py_ssize_t low = 0, high = len(self.segments), middle
        if not 0 <= i < n:
            raise IndexError("list index out of range")
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

    cdef int write(self, list out) except -1:
        """Append all values to a list."""
        cdef Block block
        cdef Py_ssize_t i
        for segment in self.segments:
            if type(segment) is Block:
                block = segment
                for i in range(block.n):
                    out.append(block.data[i])
            else:
                out.append(segment)
        for i in range(self.tail.cells.filled):
            out.append(self.tail.cells.block[i])
        return 0

    cdef bint copy_scalars(self, double *out, Py_ssize_t n):
        """Write the n values there; False where there are not so many now, or not all of them are scalars."""
        cdef Block block
        if self.length() != n:
            return False
        for segment in self.segments:
            if type(segment) is not Block:
                return False
            block = segment
            memcpy(out, block.data, block.n * sizeof(double))
            out += block.n
        if self.tail.cells.filled:
            memcpy(out, self.tail.cells.block, self.tail.cells.filled * sizeof(double))
        return True


cdef object convert_kept(object x, str key, Converted *out, list states):
    """Convert a value, and give what is kept of it: tensors without graphs, nothing that lives on a GPU."""
    convert(x, key, out, 0, 1, states)
    return x if out.plain or out.kind == SCALAR or out.kind == DEVICE else _arrays.kept(x)


# A tuple of types written into a call of isinstance would lose the error that one of them raises.
cdef tuple _lists = (list, tuple, np.ndarray)
cdef tuple _no_lists = (str, bytes, bytearray, Mapping)


cdef int moments_of_list(object values, str key, spin_moments *m) except -1:
    """The moments of whatever sequence of values the caller assigned."""
    cdef Converted value
    if not (isinstance(values, _lists) or is_tensor(values)):
        values = list(values)
    convert(values, key, &value, 0, 1, None)
    if value.kind == SCALAR:
        spin_moments_init(m)
        spin_moments_update(m, value.value)
    else:
        m[0] = value.moments
    return 0
