# The store path: from a call's keyword names to slots by one pointer comparison, from values to blocks.

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        const char *ml_name
        void *ml_meth
        int ml_flags
        const char *ml_doc
    int METH_FASTCALL
    int METH_KEYWORDS
    # Of plain pointers, where the ones that Cython declares take counted references.
    int PyFloat_CheckExact_ "PyFloat_CheckExact" (PyObject *o)
    double PyFloat_AS_DOUBLE_ "PyFloat_AS_DOUBLE" (PyObject *o)
    PyObject *Py_NewRef_ "Py_NewRef" (PyObject *o)
    TypeObject *Py_TYPE_ "Py_TYPE" (PyObject *o)
    PyObject *Py_None
    object PyDescr_NewMethod(TypeObject *type, PyMethodDef *method)
    void PyType_Modified(TypeObject *type)
    PyObject *PyTuple_GET_ITEM(PyObject *tuple, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *tuple)

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
    CALL_SITES = 64          # tuples of keyword names that are remembered; a power of two
    PROBES = 4               # places in which one of them may stand
    SITES_OF_SAME_NAMES = 8  # how many with the same names: store(**d) brings a new tuple each time
    NAMES_KNOWN = 1024       # sets of names whose cells are remembered, where names are made up as the run goes
    QUICK_VALUES = 32        # scalars of one call that are converted on the stack


@cython.final
cdef class Slot:
    """Where the values of one key go. Outlives the values, which are taken out when the key is logged."""
    cdef str key
    cdef StoredValues values
    cdef Tail tail  # shared with the values; this one stays when they go

    cdef int hold(self, StoredValues values) except -1:
        """Hold these values, and leave those held so far to whoever has them."""
        cdef Tail apart = Tail.__new__(Tail)
        if self.values is not None:
            apart.cells = self.tail.cells
            self.tail.cells.block, self.tail.cells.filled, self.tail.cells.capacity = NULL, 0, 0
            self.values.tail = apart
        else:
            self.tail = apart
        values.tail = self.tail
        self.values = values
        return 0


cdef StoredValues new_values(bint keep):
    cdef StoredValues values = StoredValues.__new__(StoredValues)
    values.keep = keep
    return values


cdef struct Site:
    PyObject *names
    Cells **cells


cdef struct Sites:
    # A hash table from the address of a call site's tuple of names to the cells of those names' slots.
    Site entry[CALL_SITES]
    unsigned int evict


cdef inline size_t home(PyObject *names) noexcept:
    """Where a tuple's entry should be; it may be one of the next PROBES. Tuples of a name or two have 64 bytes."""
    return <size_t>names >> 5


cdef inline Cells **cells_at(const Sites *sites, PyObject *names) noexcept:
    """The cells for a tuple of names that has an entry, else NULL."""
    cdef size_t at = home(names)
    cdef int i
    for i in range(PROBES):
        if sites.entry[(at + i) & (CALL_SITES - 1)].names is names:
            return sites.entry[(at + i) & (CALL_SITES - 1)].cells
    return NULL


@cython.final
cdef class Names:
    """A set of names: its slots, which outlive a deletion of their keys, and where their cells lie."""
    cdef list slots
    cdef Cells **cells
    cdef int sites  # entries of the table

    def __dealloc__(self):
        PyMem_RawFree(self.cells)


cdef class EpochStore:
    """Values by key, stored from call sites that run millions of times. The base of EpochLogger."""
    cdef dict slots                       # str -> Slot, in the order of the first store
    cdef bint _keep_values
    cdef Sites sites
    cdef list remembered                  # what the entries of `sites` point to: (tuple, Names), so that no other
                                          # tuple can come to lie at the address of one that has an entry
    cdef dict known_names                 # tuple of names -> Names

    def __cinit__(self):
        self.slots = {}
        self._keep_values = True
        self.forget_sites()

    cdef int forget_sites(self) except -1:
        memset(&self.sites, 0, sizeof(Sites))
        self.remembered = [None] * CALL_SITES
        self.known_names = {}
        return 0

    cdef Slot slot(self, str key):
        """The slot of a key, made where there is none."""
        cdef Slot slot = self.slots.get(key)
        if slot is None:
            slot = Slot.__new__(Slot)
            slot.key = key
            slot.hold(new_values(self._keep_values))
            self.slots[key] = slot
        return slot

    cdef Cells **cells_of(self, PyObject *tuple_of_names) except NULL:
        """The cells for a tuple of names, which may be one that no entry holds."""
        cdef Cells **cells = cells_at(&self.sites, tuple_of_names)
        cdef Names names
        cdef Py_ssize_t n, j
        if cells != NULL:
            return cells
        names = self.known_names.get(<tuple>tuple_of_names)
        if names is None:
            if len(self.known_names) >= NAMES_KNOWN:
                self.forget_sites()
            names = Names.__new__(Names)
            names.slots = [self.slot(<str>name) for name in <tuple>tuple_of_names]
            n = len(names.slots)
            names.cells = <Cells **>PyMem_RawMalloc(max(n, <Py_ssize_t>1) * sizeof(Cells *))
            if names.cells == NULL:
                raise MemoryError()
            for j in range(n):
                names.cells[j] = &(<Slot>names.slots[j]).tail.cells
            self.known_names[<tuple>tuple_of_names] = names
        if names.sites < SITES_OF_SAME_NAMES:
            self.enter(tuple_of_names, names)
        return names.cells

    cdef int enter(self, PyObject *tuple_of_names, Names names) except -1:
        """Give a tuple an entry, its names' first one at the cost of another's. More of the same names take only what
        is free: tuples that come once and never again would drive each other out."""
        cdef Sites *sites = &self.sites
        cdef size_t first = home(tuple_of_names)
        cdef size_t i, at = (first + sites.evict) & (CALL_SITES - 1)
        for i in range(first, first + PROBES):
            if sites.entry[i & (CALL_SITES - 1)].names == NULL:
                at = i & (CALL_SITES - 1)
                break
        else:
            if names.sites:
                return 0
            sites.evict = (sites.evict + 1) % PROBES
            (<Names>(<tuple>self.remembered[at])[1]).sites -= 1
        evicted = self.remembered[at]  # let go of at the end: that may run anybody's code
        self.remembered[at] = (<tuple>tuple_of_names, names)
        sites.entry[at].names, sites.entry[at].cells = tuple_of_names, names.cells
        names.sites += 1
        del evicted
        return 0

    # What the logger above needs ------------------------------------------------------------------------------------

    cdef int fetch_device(self) except -1:
        """Bring all states of device tensors over, for all keys at once."""
        cdef Slot slot
        cdef spin_moments m
        cdef list waiting = [slot for slot in self.slots.values() if slot.values.device]
        cdef list states
        if not waiting:
            return 0
        states = [state for slot in waiting for state in slot.values.device]
        rows = iter(_arrays.fetch(states))
        for slot in waiting:
            for _ in range(len(slot.values.device)):
                set_state(&m, next(rows))
                spin_moments_merge(&slot.values.folded, &m)
            slot.values.device = None
        return 0

    def _peek(self, str key not None):
        """The Moments of what is stored under `key`; empty where nothing is."""
        cdef Moments m = Moments.__new__(Moments)
        cdef Slot slot
        with cython.critical_section(self):
            slot = self.slots.get(key)
            if slot is not None:
                self.fetch_device()
                slot.values.read(&m.m, key)
        return m

    def _take(self, str key not None):
        """The Moments of what is stored under `key`, which is empty afterwards, and known."""
        cdef Moments m = Moments.__new__(Moments)
        cdef Slot slot
        with cython.critical_section(self):
            slot = self.slot(key)
            self.fetch_device()
            slot.values.read(&m.m, key)
            slot.hold(new_values(self._keep_values))
        return m

    def _discard(self, str key not None):
        """Empty `key`, which is known afterwards."""
        cdef Slot slot
        with cython.critical_section(self):
            slot = self.slot(key)
            slot.hold(new_values(self._keep_values))

    def _values(self, str key not None):
        """What is stored under `key`, as a list that may be changed. Raises KeyError, or ValueError where values
        are not kept."""
        cdef Slot slot
        slot = self.slots[key]
        if slot.values.foreign is not None:
            return slot.values.foreign
        if not slot.values.keep:
            raise ValueError(
                f"the values of {key!r} are not kept, only their statistics: "
                "make the logger with EpochLogger(keep_values=True) to read them"
            )
        return slot.values

    def _assign(self, key, values):
        """Let `values`, which stays the caller's, be what is stored under `key`."""
        cdef StoredValues new
        cdef Slot slot
        if not isinstance(key, str):
            raise TypeError(f"a key is a string, not {key!r}")
        with cython.critical_section(self):
            slot = self.slot(key)
            if values is slot.values:  # epoch_dict[key] += [...] assigns what it was given
                return
            new = new_values(self._keep_values)
            new.foreign = values
            slot.hold(new)

    def _forget(self, str key not None):
        """Delete `key`. Raises KeyError where it is not known."""
        with cython.critical_section(self):
            del self.slots[key]
            self.forget_sites()

    def _keys(self):
        """The keys stored so far, in the order of their first store."""
        return list(self.slots)

    def _stored_count(self, str key not None):
        """How many values (arrays count as one) are stored under `key`, kept or not."""
        cdef Slot slot = self.slots[key]
        cdef spin_moments m
        if slot.values.foreign is not None:
            return len(slot.values.foreign)
        if slot.values.keep:
            return slot.values.length()
        slot.values.read(&m, key)
        return spin_moments_count(&m)

    @property
    def keep_values(self):
        """Whether the values of an epoch are kept for `epoch_dict`, or only their statistics."""
        return self._keep_values

    @keep_values.setter
    def keep_values(self, value):
        if self.slots and bool(value) != self._keep_values:
            raise ValueError("keep_values cannot change once values are stored: give it when the logger is made")
        self._keep_values = bool(value)

    @property
    def epoch_dict(self):
        """What is stored and not yet logged: behaves as a dict of lists, and changes to it count."""
        return EpochDict(self)

    @epoch_dict.setter
    def epoch_dict(self, mapping):
        items = list(dict(mapping).items())
        for key, _ in items:
            if not isinstance(key, str):
                raise TypeError(f"a key is a string, not {key!r}")
        with cython.critical_section(self):
            self.slots = {}
            self.forget_sites()
        for key, values in items:
            self._assign(key, values)


class EpochDict(MutableMapping):
    """A logger's stored values as a dict of lists. It is a view: the logger sees every change."""

    __slots__ = ("_store", "__weakref__")

    def __init__(self, store):
        self._store = store

    def __getitem__(self, key):
        if key not in self:
            raise KeyError(key)
        return self._store._values(key)

    def __setitem__(self, key, values):
        self._store._assign(key, values)

    def __delitem__(self, key):
        if key not in self:
            raise KeyError(key)
        self._store._forget(key)

    def __iter__(self):
        return iter(self._store._keys())

    def __len__(self):
        return len((<EpochStore>self._store).slots)

    def __contains__(self, key):
        return key in (<EpochStore>self._store).slots

    def clear(self):
        """Forget all keys and values."""
        self._store.epoch_dict = {}

    def copy(self):
        """A plain dict of what is stored; the lists are the logger's own."""
        return dict(self)

    def __repr__(self):
        store = self._store
        return "{" + ", ".join(f"{key!r}: {self._shown(store, key)}" for key in store._keys()) + "}"

    @staticmethod
    def _shown(store, key):
        try:
            return repr(store._values(key))
        except ValueError:
            return f"<{store._stored_count(key)} values, not kept>"

    def __reduce__(self):
        return dict, ({key: list(values) for key, values in self.items()},)

    def __copy__(self):
        return dict(self)

    def __deepcopy__(self, memo):
        from copy import deepcopy
        return {key: deepcopy(list(values), memo) for key, values in self.items()}


# store() itself: a METH_FASTCALL | METH_KEYWORDS method, so that a call builds no dict -------------------------------

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


cdef PyObject *store_fast(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names) except NULL:
    # Plain pointers throughout: counting references would cost more than the work. Floats only, and nothing that could
    # fail, so the compiler has little to save and to set up; all else is for store_scalars.
    cdef Sites *sites = &(<EpochStore>self).sites
    cdef Cells **cells
    cdef Cells *to
    cdef Py_ssize_t n, i
    if nargs == 0 and names != NULL:
        SPIN_LOCK(self)
        cells = cells_at(sites, names)
        if cells != NULL:
            n = PyTuple_GET_SIZE(names)
            for i in range(n):
                to = cells[i]
                if to.filled == to.capacity or not in_place(args[i]):
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


cdef PyObject *store_scalars(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names) except NULL:
    """Scalars of any exact type, from any call site."""
    cdef Cells **cells
    cdef double quick[QUICK_VALUES]
    cdef Py_ssize_t n = 0 if names == NULL else PyTuple_GET_SIZE(names), i
    if nargs or n == 0 or n > QUICK_VALUES:
        return store_any(<EpochStore>self, args, nargs, names)
    # All values first: their conversion may raise, and nothing of the call is stored then.
    for i in range(n):
        if not quick_scalar(<object>args[i], &quick[i]):
            return store_any(<EpochStore>self, args, nargs, names)
    with cython.critical_section(<EpochStore>self):
        cells = (<EpochStore>self).cells_of(names)
        for i in range(n):
            if cells[i].filled == cells[i].capacity:
                push_scalars(<EpochStore>self, args, names, quick, n)
                return Py_NewRef_(Py_None)
        for i in range(n):
            cells[i].block[cells[i].filled] = quick[i]
            cells[i].filled += 1
    return Py_NewRef_(Py_None)


cdef int push_scalars(EpochStore self, PyObject *const *args, PyObject *names, const double *quick,
                      Py_ssize_t n) except -1:
    """Append scalars where a block is full, or a list of the caller's takes part."""
    cdef list slots = [self.slot(<str>name) for name in <tuple>names]
    cdef Slot slot
    cdef Py_ssize_t i
    for slot in slots:
        if slot.values.foreign is None:
            slot.values.make_room()
    for i in range(n):
        slot = slots[i]
        if slot.values.foreign is None:
            slot.values.push(quick[i])
        else:
            slot.values.foreign.append(<object>args[i])
    return 0


cdef PyObject *store_any(EpochStore self, PyObject *const *args, Py_ssize_t nargs, PyObject *names) except NULL:
    """The general way: arrays, tensors, lists, a mapping of keys that are no identifiers."""
    cdef list keys = []
    cdef list given = []
    cdef Py_ssize_t n = 0 if names == NULL else PyTuple_GET_SIZE(names)
    cdef Py_ssize_t i
    if nargs > 1:
        raise TypeError(f"store() takes at most one positional argument, a mapping of keys to values ({nargs} given)")
    if nargs == 1:
        data = <object>args[0]
        if data is not None:
            if not hasattr(data, "keys") or not hasattr(data, "__getitem__"):
                raise TypeError(
                    f"store() takes values by keyword, or one mapping of keys to values, not {type(data).__qualname__}"
                )
            for key in data.keys():
                if not isinstance(key, str):
                    raise TypeError(f"a key is a string, not {key!r}")
                keys.append(str(key))
                given.append(data[key])
    for i in range(n):
        key = <object>PyTuple_GET_ITEM(names, i)
        if key in keys:
            raise TypeError(f"store() got two values for key {key!r}")
        keys.append(key)
        given.append(<object>args[nargs + i])
    if keys:
        store_converted(self, keys, given)
    return Py_NewRef_(Py_None)


cdef int store_converted(EpochStore self, list keys, list given) except -1:
    cdef Py_ssize_t n = len(keys), i
    cdef Converted *converted = <Converted *>PyMem_RawMalloc(n * sizeof(Converted))
    cdef StoredValues values
    cdef list kept = list(given)
    if converted == NULL:
        raise MemoryError()
    try:
        for i in range(n):
            x = given[i]
            convert(x, keys[i], &converted[i], 0, 1)
            if converted[i].kind != SCALAR and type(x) is not _ndarray and is_tensor(x):
                kept[i] = _arrays.detached(x, keys[i])
                if converted[i].kind == DEVICE:
                    kept[i] = _arrays.device_moments(kept[i])
        with cython.critical_section(self):
            for i in range(n):
                values = self.slot(keys[i]).values
                if values.foreign is None and converted[i].kind == SCALAR:
                    values.make_room()
            for i in range(n):
                values = self.slot(keys[i]).values
                if values.foreign is not None:
                    values.foreign.append(given[i])
                elif converted[i].kind == SCALAR:
                    values.push(converted[i].value)
                elif converted[i].kind == MANY:
                    values.push_many(kept[i], &converted[i].moments)
                else:
                    values.push_device(kept[i])
    finally:
        PyMem_RawFree(converted)
    return 0


cdef PyMethodDef _store_method
_store_method.ml_name = "store"
_store_method.ml_meth = <void *>store_fast
_store_method.ml_flags = METH_FASTCALL | METH_KEYWORDS
_store_method.ml_doc = b"""store($self, data=None, /, **values)
--

Save values under their names until the names are logged.

Parameters
----------
data : mapping, optional
    Keys to values, for keys that are no identifiers.
values
    Numbers, or arrays, tensors, lists or tuples of numbers, of any shape; each element counts once. Arrays are
    reduced at once, so they may be overwritten afterwards. Tensors are detached; one on a GPU is reduced there and
    nothing waits for it.

Raises
------
TypeError
    For what is no real number, naming the key. Nothing of the call is then stored.
"""


cdef int _add_store_method() except -1:
    # Into the type's dict before anything can subclass it or cache its absence.
    cdef TypeObject *type = <TypeObject *>EpochStore
    (<dict>type.tp_dict)["store"] = PyDescr_NewMethod(type, &_store_method)
    PyType_Modified(type)
    return 0


_add_store_method()
