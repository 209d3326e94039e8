# From any Python object to numbers: scalars, buffers, and what spinstat._arrays makes into arrays.

cdef extern from "Python.h":
    double PyFloat_AsDouble(object o) except? -1.0
    int PyFloat_CheckExact(object o)
    double PyLong_AsDouble_ "PyLong_AsDouble" (object o)  # which checks for no error
    PyObject *PyErr_Occurred()
    void PyErr_Clear()
    ctypedef struct PyNumberMethods:
        void *nb_float
        void *nb_index
    ctypedef struct TypeObject "PyTypeObject":
        PyNumberMethods *tp_as_number
        PyObject *tp_dict
    TypeObject *Py_TYPE(object o)
    int PyObject_TypeCheck(object o, TypeObject *type)

cdef enum:
    # Below this many elements the reduction is over before another thread could have used the interpreter.
    RELEASE_GIL_FROM = 1 << 14
    NESTING_LIMIT = 32  # of lists, each some 6 kB of the stack
    LIST_BLOCK = 4096  # numbers of a list that are reduced together: a kernel block

# What a value turns out to be.
cdef enum Kind:
    SCALAR  # one number, in value
    MANY    # any number of them, in moments
    DEVICE  # a tensor that is not on the CPU: many, of which nothing is kept
    REFERRED  # many, to which the store path holds its reference already
    STORED  # nothing more: the store path has done with it

cdef struct Converted:
    Kind kind
    double value
    spin_moments moments
    bint plain         # may be kept as it is: no tensor, nor what may lie on a device, is in it
    Py_ssize_t states  # how many states of tensors there are up to this one, where several are converted

cdef object _ndarray = np.ndarray
cdef object _generic = np.generic
cdef TypeObject *_any_generic = <TypeObject *>_generic
# NumPy's scalar types whose float() is their value. Complex and datetime scalars have one too, which is not.
cdef frozenset _real_scalars = frozenset(
    np.dtype(code).type for code in (*np.typecodes["AllInteger"], *np.typecodes["Float"], "?")
)
cdef object _float32_type = np.float32
cdef object _float64_type = np.float64
cdef TypeObject *_float32 = <TypeObject *>_float32_type
cdef dict _modules = sys.modules
cdef object _tensor = None  # torch.Tensor, once there is one
cdef tuple _never = (str, bytes, bytearray, complex, dict, set, frozenset, type, type(None),
                     np.complexfloating, np.character, np.datetime64, np.timedelta64, np.void, np.object_)


cdef inline float float32_at(PyObject *x) noexcept:
    """What lies behind the object's head: in every NumPy so far, the value of a float32 scalar."""
    return (<float *>(<char *>x + sizeof(PyObject)))[0]


cdef bint _float32_is_at_hand = all(
    float32_at(<PyObject *>x) == PyFloat_AsDouble(x) for x in map(np.float32, (1.5, -3.25e-20, 7.0e30, 0.1))
)


cdef inline bint is_tensor(object x) except -1:
    """Whether x is a torch tensor; there is none before torch has been imported."""
    global _tensor
    if _tensor is None:
        if "torch" not in _modules:
            return False
        tensor = getattr(_modules["torch"], "Tensor", None)  # absent while torch is being imported
        if not isinstance(tensor, type):  # or a mock of torch
            return False
        _tensor = tensor
    return type(x) is _tensor or isinstance(x, _tensor)


cdef bint quick_scalar(object x, double *value) except -1:
    """Whether x is a float, an int in its range or one of NumPy's real scalars; then its value. Runs none of
    the caller's code."""
    if PyFloat_CheckExact(x):
        value[0] = PyFloat_AS_DOUBLE(x)
        return True
    if Py_TYPE(x) is _float32:
        value[0] = float32_at(<PyObject *>x) if _float32_is_at_hand else PyFloat_AsDouble(x)
        return True
    if PyFloat_Check(x):
        value[0] = PyFloat_AS_DOUBLE(x)
        return True
    if PyLong_Check(x):
        value[0] = PyLong_AsDouble_(x)
        if value[0] != -1.0 or not PyErr_Occurred():
            return True
        PyErr_Clear()
        return False
    if PyObject_TypeCheck(x, _any_generic) and type(x) in _real_scalars:
        value[0] = PyFloat_AsDouble(x)
        return True
    return False


cdef bint kernel_dtype(const Py_buffer *view, spin_dtype *dtype) noexcept:
    """Whether the kernels read this buffer as it lies."""
    cdef const char *code = view.format
    cdef Py_ssize_t size = view.itemsize
    # No reader has to believe an exporter whose items are not of their format's size.
    if code == NULL or size <= 0 or (view.len > 0 and <size_t>view.buf % <size_t>size != 0):
        return False
    if code[0] == c'@' or code[0] == c'=':
        code += 1
    if strlen(code) != 1:
        return False
    if code[0] == c'd' and size == 8:
        dtype[0] = SPIN_FLOAT64
    elif code[0] == c'f' and size == 4:
        dtype[0] = SPIN_FLOAT32
    elif code[0] in (c'i', c'l', c'q', c'n'):
        if size == 8:
            dtype[0] = SPIN_INT64
        elif size == 4:
            dtype[0] = SPIN_INT32
        else:
            return False
    else:
        return False
    return PyBuffer_IsContiguous(view, c'A')


cdef int reduce_contiguous(spin_moments *m, const void *data, int64_t n, spin_dtype dtype,
                           Py_ssize_t itemsize, int threads, object owner) except -1:
    """Add n elements to m; without the GIL where that is worth while, on several threads where asked for.
    The owner keeps the elements in their place, if threads are to read on after an interrupt."""
    cdef Chunks chunks
    if threads > 1 and n > SPIN_CHUNK:
        chunks = Chunks.__new__(Chunks)
        chunks.owner = owner
        chunks.reduce(m, data, n, dtype, itemsize, threads)
    elif n >= RELEASE_GIL_FROM:
        with nogil:
            spin_moments_reduce(m, data, n, dtype)
    else:
        spin_moments_reduce(m, data, n, dtype)
    return 0


cdef class Chunks:
    """A threaded reduction: fixed chunks, merged in order, so the bits do not depend on the threads."""
    cdef spin_moments *parts
    cdef object owner
    cdef const char *data
    cdef int64_t n
    cdef int64_t count
    cdef spin_dtype dtype
    cdef Py_ssize_t itemsize
    cdef int threads

    def __dealloc__(self):
        PyMem_RawFree(self.parts)

    def work(self, int64_t first):
        cdef int64_t i, begin, length
        with nogil:
            i = first
            while i < self.count:
                begin = i * SPIN_CHUNK
                length = min(SPIN_CHUNK, self.n - begin)
                spin_moments_init(&self.parts[i])
                spin_moments_reduce(&self.parts[i], self.data + begin * self.itemsize, length, self.dtype)
                i += self.threads

    cdef int reduce(self, spin_moments *m, const void *data, int64_t n, spin_dtype dtype, Py_ssize_t itemsize,
                    int threads) except -1:
        cdef spin_tree tree
        cdef int64_t i
        from concurrent.futures import ThreadPoolExecutor
        self.count = (n + SPIN_CHUNK - 1) // SPIN_CHUNK
        self.threads = <int>min(<int64_t>threads, self.count)
        self.data, self.n, self.dtype, self.itemsize = <const char *>data, n, dtype, itemsize
        self.parts = <spin_moments *>PyMem_RawMalloc(self.count * sizeof(spin_moments))
        if self.parts == NULL:
            raise MemoryError()
        with ThreadPoolExecutor(self.threads) as pool:
            for done in [pool.submit(self.work, i) for i in range(self.threads)]:
                done.result()
        spin_tree_init(&tree)
        for i in range(self.count):
            spin_tree_push(&tree, &self.parts[i])
        spin_tree_fold(&tree, m)
        return 0


cdef bint reduce_buffer(object x, Converted *out, bint *scalar, int threads) except -1:
    """Convert what lies in memory as the kernels read it; False for anything else."""
    cdef Py_buffer view
    cdef spin_dtype dtype = SPIN_FLOAT64
    cdef bint done = False
    try:
        if threads > 1:
            x = PyMemoryView_FromObject(x)
        PyObject_GetBuffer(x, &view, PyBUF_FORMAT | PyBUF_STRIDES)
    except (BufferError, ValueError, TypeError):
        return False  # datetimes and other dtypes without a buffer format: NumPy knows better what they are
    try:
        if kernel_dtype(&view, &dtype):
            spin_moments_init(&out.moments)
            reduce_contiguous(&out.moments, view.buf, view.len // view.itemsize, dtype, view.itemsize, threads, x)
            done = True
        scalar[0] = view.ndim == 0
    finally:
        PyBuffer_Release(&view)
    return done


cdef int reduce_blocks(object array, object mask, spin_moments *m) except -1:
    """The moments of an ndarray of any layout and real dtype, a block at a time."""
    cdef spin_moments block
    cdef spin_tree tree
    cdef Py_buffer view
    spin_tree_init(&tree)
    for values in _arrays.blocks(array, mask):
        PyObject_GetBuffer(values, &view, PyBUF_FORMAT | PyBUF_STRIDES)
        try:
            spin_moments_init(&block)
            reduce_contiguous(&block, view.buf, view.len // view.itemsize, SPIN_FLOAT64, view.itemsize, 1, None)
        finally:
            PyBuffer_Release(&view)
        spin_tree_push(&tree, &block)
    spin_moments_init(m)
    spin_tree_fold(&tree, m)
    return 0


cdef int reduce_array(object x, str key, Converted *out, int threads) except -1:
    """Convert what NumPy can see as an array, contiguous or not."""
    cdef bint scalar = False
    # Subclasses of ndarray may hide elements (masked arrays do), so they take the other way.
    cdef bint plain = type(x) is _ndarray or (PyObject_CheckBuffer(x) and not isinstance(x, _ndarray))
    if not plain or not reduce_buffer(x, out, &scalar, threads):
        array, mask = _arrays.as_real(x, key)
        if array is x or mask is not None or not reduce_buffer(array, out, &scalar, threads):
            reduce_blocks(array, mask, &out.moments)
        scalar = array.ndim == 0
    out.kind = MANY
    if scalar and spin_moments_count(&out.moments) == 1:
        out.kind = SCALAR
        out.value = spin_moments_min(&out.moments)  # keeps the sign of a zero, as its mean does not
    return 0


cdef int reduce_sequence(object x, str key, Converted *out, int depth, list states) except -1:
    """Convert a list or another sequence: the elements of its elements, whatever their shapes."""
    cdef double[64] few
    cdef double *pending = few
    cdef Py_ssize_t room = 64, filled = 0, n
    cdef Converted element
    cdef spin_tree tree
    cdef spin_moments block
    cdef bint plain = True
    if depth >= NESTING_LIMIT:
        _arrays.reject(x, key, f"it is nested more than {NESTING_LIMIT} deep")
    n = len(x)  # once: a sequence of the caller's may say something else the next time
    if n > room:
        room = min(n, <Py_ssize_t>LIST_BLOCK)
        pending = <double *>PyMem_RawMalloc(room * sizeof(double))
        if pending == NULL:
            raise MemoryError()
    try:
        spin_tree_init(&tree)
        for item in x:
            if not quick_scalar(item, &element.value):
                convert(item, key, &element, depth + 1, 1, states)
                plain = plain and element.plain
                if element.kind != SCALAR:
                    spin_tree_push(&tree, &element.moments)
                    continue
            pending[filled] = element.value
            filled += 1
            if filled == room:
                spin_moments_init(&block)
                spin_moments_reduce(&block, pending, filled, SPIN_FLOAT64)
                spin_tree_push(&tree, &block)
                filled = 0
        spin_moments_init(&out.moments)
        spin_moments_reduce(&out.moments, pending, filled, SPIN_FLOAT64)
        spin_tree_fold(&tree, &out.moments)
    finally:
        if pending is not few:
            PyMem_RawFree(pending)
    out.kind, out.plain = MANY, plain
    return 0


cdef int convert(object x, str key, Converted *out, int depth, int threads, list states) except -1:
    """What x stands for. Raises TypeError, naming the key, where that is no real number. The states of
    tensors that are not on the CPU are put into `states`, or fetched where that is None."""
    cdef PyNumberMethods *number
    out.plain = True
    if type(x) is _ndarray:
        return reduce_array(x, key, out, threads)
    if quick_scalar(x, &out.value):
        out.kind = SCALAR
        return 0
    if isinstance(x, _never):
        _arrays.reject(x, key)
    if isinstance(x, (list, tuple)):
        return reduce_sequence(x, key, out, depth, states)
    if is_tensor(x):
        out.plain = False
        if x.is_cpu and x.ndim == 0:
            item = x.item()  # needs neither a detached tensor nor an array, and is what a loss mostly is
            if not isinstance(item, (float, int)):
                _arrays.reject(x, key, "complex numbers have no order")
            out.kind = SCALAR
            out.value = PyFloat_AsDouble(item)
            return 0
        x = _arrays.to_host(x, key)
        if type(x) is _ndarray:
            return reduce_array(x, key, out, threads)
        out.kind = DEVICE
        return reduce_on_device(x, &out.moments, states)
    if not isinstance(x, _generic) and (PyObject_CheckBuffer(x) or _arrays.has_array(x)):
        out.plain = False
        return reduce_array(x, key, out, threads)
    number = Py_TYPE(x).tp_as_number
    if number == NULL or (number.nb_float == NULL and number.nb_index == NULL):
        if isinstance(x, Sequence):  # a range or a deque, as NumPy would take it
            return reduce_sequence(x, key, out, depth, states)
        _arrays.reject(x, key)
    if PyLong_Check(x):  # or quick_scalar would have taken it
        raise OverflowError(f"an int{_arrays.of_key(key)} is too large for a float64, which ends at 1.8e308")
    try:
        out.value = PyFloat_AsDouble(x)
    except Exception as error:
        _arrays.name_key(error, x, key)
        raise
    out.kind = SCALAR
    return 0


cdef int set_state(spin_moments *m, object parts) except -1:
    """The state that spinstat._arrays packed on a device, or a pickle holds. Raises ValueError for another number of
    parts."""
    if len(parts) != 9:
        raise ValueError(f"a state has 9 parts, not {len(parts)}")
    m.count, m.mean, m.mean_low, m.m2 = <int64_t>parts[0], parts[1], parts[2], parts[3]
    if m.mean_low != 0.0:  # of a device whose numbers are float32, more than a float64 can lack
        m.mean += m.mean_low
        m.mean_low = <double>parts[2] - (m.mean - <double>parts[1])
    m.min, m.max = parts[4], parts[5]
    m.nan_count, m.posinf_count, m.neginf_count = <int64_t>parts[6], <int64_t>parts[7], <int64_t>parts[8]
    return 0


cdef int reduce_on_device(object x, spin_moments *m, list states) except -1:
    """Reduce a tensor where it lives, and wait for the result only where there is no list to put it into."""
    state = _arrays.device_moments(x)
    if states is None:
        set_state(m, _arrays.fetch([state])[0])
    else:
        spin_moments_init(m)
        states.append(state)
    return 0
