# Where scalars lie: blocks of float64, which grow, fill up and are closed.

cdef enum:
    FIRST_CAPACITY = 32
    BLOCK_CAPACITY = 8192  # values between two runs of the bulk kernel
    SPARE_BLOCKS = 256     # 16 MiB at most
    SMALL_CAPACITY = 512   # a block that outgrows this becomes full-size at once where a spare one lies about

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

# Blocks of full size that nobody uses. Each epoch fills about as many as the one before, and memory that has
# gone back to the system costs a page fault for every 512 values: more than storing them.
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


cdef struct Cells:
    # Scalars whose moments are not taken yet: the current block. Full, or absent, where filled is capacity.
    double *block
    Py_ssize_t filled
    Py_ssize_t capacity


cdef int grow(Cells *cells) except -1:
    """Make room in a block that is full or absent, but not of full size."""
    cdef Py_ssize_t wanted = max(<Py_ssize_t>FIRST_CAPACITY, 2 * cells.capacity)
    cdef double *larger
    if wanted >= BLOCK_CAPACITY or (wanted > SMALL_CAPACITY and spares > 0):
        wanted = BLOCK_CAPACITY
        larger = new_block()
        memcpy(larger, cells.block, cells.filled * sizeof(double))
        PyMem_RawFree(cells.block)
    else:
        larger = <double *>PyMem_RawRealloc(cells.block, wanted * sizeof(double))
        if larger == NULL:
            raise MemoryError()
    cells.block, cells.capacity = larger, wanted
    return 0


@cython.final
cdef class Block:
    """Scalars that no longer change."""
    cdef double *data
    cdef Py_ssize_t n
    cdef Py_ssize_t capacity

    def __dealloc__(self):
        free_block(self.data, self.capacity)

    cdef int take(self, Cells *cells) noexcept:
        """Take the current block over, which is absent afterwards."""
        cdef double *exact
        self.n, self.capacity, self.data = cells.filled, cells.capacity, cells.block
        cells.block, cells.filled, cells.capacity = NULL, 0, 0
        if self.n < self.capacity:
            exact = <double *>PyMem_RawRealloc(self.data, self.n * sizeof(double))
            if exact != NULL:
                self.data, self.capacity = exact, self.n
        return 0


@cython.final
cdef class Tail:
    """The cells that a key's scalars are appended to. Its address stays while the key lives, so that a call
    site can go straight to it; what is in the cells goes to whoever holds the values at the key's log."""
    cdef Cells cells

    def __dealloc__(self):
        free_block(self.cells.block, self.cells.capacity)
