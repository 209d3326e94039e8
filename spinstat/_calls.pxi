# store() itself: a METH_FASTCALL | METH_KEYWORDS method, so that a call builds no dict. From a call's names
# to cells by one pointer comparison, from values to blocks.

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        const char *ml_name
        void *ml_meth
        int ml_flags
        const char *ml_doc
    int METH_FASTCALL
    int METH_KEYWORDS
    # Of plain pointers, where the ones that Cython declares take counted references.
    int PyUnicode_CheckExact_ "PyUnicode_CheckExact" (PyObject *o)
    int PyFloat_CheckExact_ "PyFloat_CheckExact" (PyObject *o)
    double PyFloat_AS_DOUBLE_ "PyFloat_AS_DOUBLE" (PyObject *o)
    PyObject *Py_NewRef_ "Py_NewRef" (PyObject *o)
    TypeObject *Py_TYPE_ "Py_TYPE" (PyObject *o)
    PyObject *Py_None
    object PyDescr_NewMethod(TypeObject *type, PyMethodDef *method)
    void PyType_Modified(TypeObject *type)

cdef extern from *:
    """
    /* A critical section without the temporaries that Cython keeps for one: nothing where there is a GIL. */
    #ifdef Py_GIL_DISABLED
    #define SPIN_LOCK(o) PyCriticalSection spin_section; PyCriticalSection_Begin(&spin_section, (o))
    #define SPIN_UNLOCK() PyCriticalSection_End(&spin_section)
    #else
    #define SPIN_LOCK(o) (void)(o)
    #define SPIN_UNLOCK() (void)0
    #endif
    """
    void SPIN_LOCK(PyObject *o) noexcept
    void SPIN_UNLOCK() noexcept

cdef enum:
    QUICK_VALUES = 32  # scalars of one call that are converted on the stack

# The types whose value lies in the object, to be read without a call. NumPy's float64 is a float.
cdef TypeObject *_float64 = <TypeObject *>_float64_type
cdef TypeObject *_float32_in_place = _float32 if _float32_is_at_hand else _float64


cdef inline bint in_place(PyObject *x) noexcept:
    return PyFloat_CheckExact_(x) or Py_TYPE_(x) is _float32_in_place or Py_TYPE_(x) is _float64


cdef inline double value_in_place(PyObject *x) noexcept:
    return float32_at(x) if Py_TYPE_(x) is _float32 else PyFloat_AS_DOUBLE_(x)


# Through a pointer, or the compiler would inline it and have the quick way save registers for the slow one.
cdef PyObject *(*_otherwise)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *) except NULL
_otherwise = store_scalars


cdef PyObject *store_fast(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *names) except NULL:
    # Plain pointers throughout: counting references would cost more than the work. Floats only, and nothing
    # that could fail, so the compiler has little to save and to set up; all else is for store_scalars.
    cdef Sites *sites = &(<EpochStore>self).sites
    cdef Cells **cells
    cdef Cells *to
    cdef Py_ssize_t n, i
    if nargs == 0 and names != NULL:
        SPIN_LOCK(<PyObject *>(<EpochStore>self).lock)
        cells = cells_at(sites, names)
        if cells != NULL:
            n = PyTuple_GET_SIZE(names)
            for i in range(n):
                to = cells[i]
                if to.filled >= to.capacity or not in_place(args[i]):
                    break
            else:
                for i in range(n):
                    to = cells[i]
                    to.block[to.filled] = value_in_place(args[i])
                    to.filled += 1
                SPIN_UNLOCK()
                return Py_NewRef_(Py_None)
        SPIN_UNLOCK()
    return _otherwise(self, args, nargs, names)


cdef PyObject *store_scalars(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *names) except NULL:
    """Scalars of any exact type, from any call site."""
    cdef EpochStore store = <EpochStore>self
    cdef Cells **cells
    cdef Names known
    cdef double quick[QUICK_VALUES]
    cdef Py_ssize_t n = 0 if names == NULL else PyTuple_GET_SIZE(names), i
    if nargs or n == 0 or n > QUICK_VALUES:
        return store_any(store, args, nargs, names)
    # All values first: where one has to be converted otherwise, or cannot be, nothing is stored here.
    for i in range(n):
        if not quick_scalar(<object>args[i], &quick[i]):
            return store_one(store, args, names) if n == 1 else store_any(store, args, nargs, names)
        if not PyUnicode_CheckExact_(PyTuple_GET_ITEM(names, i)):
            return store_any(store, args, nargs, names)
    with cython.critical_section(store.lock):
        cells = cells_at(&store.sites, names)
        if cells == NULL:
            known = store.names_of(names)
            cells = known.cells
        for i in range(n):
            if cells[i].filled >= cells[i].capacity:
                break
        else:
            for i in range(n):
                cells[i].block[cells[i].filled] = quick[i]
                cells[i].filled += 1
            return Py_NewRef_(Py_None)
    return store_any(store, args, nargs, names)


cdef PyObject *store_one(EpochStore self, PyObject *const *args, PyObject *names) except NULL:
    """One array, tensor or list: what store_any does, without the lists that several values need."""
    cdef object x = <object>args[0]
    cdef str key
    cdef list states = []
    cdef Converted converted
    cdef Values values
    if not PyUnicode_CheckExact_(PyTuple_GET_ITEM(names, 0)):
        return store_any(self, args, 0, names)
    key = <str>PyTuple_GET_ITEM(names, 0)
    x = convert_kept(x, key, &converted, states)
    converted.states = len(states)
    with cython.critical_section(self.lock):
        values = self.slot(key).values
        if values.foreign is None and not values.device and not states:
            values.push_converted(x, &converted)
            return Py_NewRef_(Py_None)
    commit(self, [key], [x], &converted, states)
    return Py_NewRef_(Py_None)


cdef PyObject *store_any(EpochStore self, PyObject *const *args, Py_ssize_t nargs,
                         PyObject *names) except NULL:
    """The general way: full blocks, arrays, tensors, lists, a mapping of keys that are no identifiers."""
    cdef list keys = [], given = []
    cdef Py_ssize_t n = 0 if names == NULL else PyTuple_GET_SIZE(names)
    cdef Py_ssize_t i
    if nargs > 1:
        raise TypeError(
            f"store() takes at most one positional argument, a mapping of keys to values ({nargs} given)"
        )
    if nargs == 1 and <object>args[0] is not None:
        data = <object>args[0]
        if not hasattr(data, "keys") or not hasattr(data, "__getitem__"):
            raise TypeError(
                "store() takes values by keyword, or one mapping of keys to values, "
                f"not {type(data).__qualname__}"
            )
        for key in data.keys():
            keys.append(as_key(key))
            given.append(data[key])
    for i in range(n):
        keys.append(as_key(<object>PyTuple_GET_ITEM(names, i)))
        given.append(<object>args[nargs + i])
    if nargs and len(set(keys)) < len(keys):
        raise TypeError(f"store() got two values for key {[key for key in keys if keys.count(key) > 1][0]!r}")
    if keys:
        store_converted(self, keys, given)
    return Py_NewRef_(Py_None)


cdef int store_converted(EpochStore self, list keys, list given) except -1:
    cdef Py_ssize_t n = len(keys), i
    cdef list states = []  # of tensors on devices
    cdef Converted *converted = <Converted *>PyMem_RawMalloc(n * sizeof(Converted))
    if converted == NULL:
        raise MemoryError()
    try:
        # All that may fail first: the conversion of every value, what needs memory, lists of the caller's.
        for i in range(n):
            given[i] = convert_kept(given[i], keys[i], &converted[i], states)
            converted[i].states = len(states)
        commit(self, keys, given, converted, states)
    finally:
        PyMem_RawFree(converted)
    return 0


cdef int commit(EpochStore self, list keys, list given, Converted *converted, list states) except -1:
    """Store what one call gave, converted, or nothing of it. What fails comes first."""
    cdef Py_ssize_t n = len(keys), i
    cdef list targets = [None] * n
    cdef bint foreign = False
    cdef Values values
    with cython.critical_section(self.lock):
        # While this runs keys may be logged, deleted and assigned, so their values are looked up each time.
        for i in range(n):
            values = self.slot(keys[i]).values.end()
            values.make_room_on_device()
            if values.foreign is None and converted[i].kind == SCALAR:
                values.make_room()
            foreign = foreign or values.foreign is not None
        if foreign:
            append_all_foreign(self, keys, given, converted)
        refer_to_all(self, keys, given, converted, states, targets)
        for i in range(n):
            values = targets[i]
            if values is None:  # assigned while the caller's lists were appended to
                x = lasting(given[i], &converted[i])
                append_foreign(self.slot(keys[i]).values.end(), x)
            elif converted[i].kind == SCALAR:
                values.push(converted[i].value)
            elif converted[i].kind == REFERRED:
                spin_moments_merge(&values.folded, &converted[i].moments)
            elif converted[i].kind == MANY:
                values.push_many(given[i], &converted[i].moments)
    return 0


cdef int refer_to_all(EpochStore self, list keys, list given, Converted *converted, list states,
                      list targets) except -1:
    """Put what needs memory into the values of each key, or nothing anywhere: references to arrays, states of
    tensors on devices, room for scalars. `targets` becomes the values, None where a list of the caller's is."""
    cdef Py_ssize_t n = len(keys), first = 0, extended = 0, i
    cdef Values values
    try:
        for i in range(n):
            values = self.slot(keys[i]).values.end()
            if values.foreign is None or converted[i].kind in (DEVICE, STORED):
                targets[i] = values
                if states:
                    values.device.extend(states[first:converted[i].states])
            first = converted[i].states
            extended += 1
        for i in range(n):  # runs no other code, so that these references and the moments stay together
            values = targets[i]
            if values is not None and converted[i].kind == SCALAR:
                values.make_room()
            elif values is not None and converted[i].kind == MANY and not after_scalar(targets, converted, i):
                values.refer_to(given[i])
                converted[i].kind = REFERRED
    except BaseException:
        for i in range(extended - 1, -1, -1):  # backwards, as keys may share a list
            values = targets[i]
            if values is not None:
                values.drop_last_states(converted[i].states - (converted[i - 1].states if i else 0))
                if converted[i].kind == REFERRED:
                    values.drop_last_reference(given[i])
        raise
    return 0


cdef bint after_scalar(list targets, const Converted *converted, Py_ssize_t i):
    """Whether an earlier key of the call shares its list with key i and has a scalar to go there first."""
    cdef Py_ssize_t j
    for j in range(i):
        if converted[j].kind == SCALAR and targets[j] is targets[i]:
            return True
    return False


cdef tuple _lasting = (int, float, np.generic, np.ndarray)  # what stays the number that it is


cdef object lasting(object x, const Converted *value):
    """What is appended to a list of the caller's. Its statistics are taken at the log: so of arrays copies, and
    of objects that are read as numbers the number, as they may be another one by then."""
    if value.kind == SCALAR and not isinstance(x, _lasting) and not is_tensor(x):
        return value.value
    return _arrays.snapshot(x)


cdef int append_foreign(Values values, object x) except -1:
    """Append to what the caller assigned, which becomes a list where it is a sequence that cannot grow."""
    cdef object foreign = values.foreign
    cdef list own
    if not hasattr(foreign, "append"):
        own = list(foreign)
        if values.foreign is foreign:
            values.foreign = own
        foreign = values.foreign
    foreign.append(x)
    return 0


cdef int append_all_foreign(EpochStore self, list keys, list given, Converted *converted) except -1:
    """Append to the lists that are the caller's what goes there, or nothing to any."""
    cdef Py_ssize_t n = len(keys), i
    cdef list appended = []
    cdef Values values
    # Before any list is looked up: a copy of an array runs code, in which a key may be logged, and what was
    # appended to its list after that would be lost.
    cdef list final = [lasting(given[i], &converted[i]) for i in range(n)]
    for i in range(n):
        values = self.slot(keys[i]).values.end()
        if values.foreign is not None and converted[i].kind != DEVICE:
            try:
                append_foreign(values, final[i])
            except BaseException as error:
                for _, foreign, x in reversed(appended):
                    if type(foreign) is list and foreign and foreign[len(foreign) - 1] is x:
                        foreign.pop()
                if isinstance(error, Exception):
                    _arrays.name_key(error, given[i], keys[i])
                raise
            appended.append((i, values.foreign, final[i]))
    for at, _, _ in appended:
        converted[<Py_ssize_t>at].kind = STORED
    return 0


cdef PyMethodDef _store_method
_store_method.ml_name = "store"
_store_method.ml_meth = <void *>store_fast
_store_method.ml_flags = METH_FASTCALL | METH_KEYWORDS
_store_method.ml_doc = b"""store($self, data=None, /, **values)
--

Save values under their names until the names are logged.

Args:
    data: a mapping of keys to values, for keys that are no identifiers.
    values: numbers, or arrays, tensors, lists or tuples of numbers, of any shape; each element counts once.
        Arrays are reduced at once, so they may be overwritten afterwards. Tensors are detached; one on a GPU
        is reduced there and nothing waits for it.

Raises:
    TypeError: for what is no real number, naming the key. Nothing of the call is then stored.

Examples:
    >>> from spinstat import EpochLogger
    >>> logger = EpochLogger("run", quiet=True)
    >>> logger.store(EpRet=3.0, VVals=[0.5, 1.5])
    >>> logger.store({"time/step": 0.01})
    >>> logger.epoch_dict["EpRet"], list(logger.epoch_dict)
    ([3.0], ['EpRet', 'VVals', 'time/step'])
"""


cdef int _add_store_method() except -1:
    # Into the type's dict before anything can subclass it or cache its absence.
    cdef TypeObject *type = <TypeObject *>EpochStore
    (<dict>type.tp_dict)["store"] = PyDescr_NewMethod(type, &_store_method)
    PyType_Modified(type)
    return 0


_add_store_method()
