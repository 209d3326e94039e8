# The store: keys and their values, and the call sites that go straight to them.

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(PyObject *tuple, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *tuple)

cdef enum:
    CALL_SITES = 64          # tuples of keyword names that are remembered; a power of two
    PROBES = 4               # places in which one of them may stand
    SITES_OF_SAME_NAMES = 8  # how many with the same names: store(**d) brings a new tuple each time
    LEARN_TRIES = 10         # where finalizers, or threads they give way to, delete keys at the same time
    NAMES_KNOWN = 1024       # sets of names whose cells are remembered, where names are made up in the run


cdef str as_key(object key):
    """A key as a plain str, of which subclasses are taken too. Raises TypeError for what is no str."""
    if type(key) is str:
        return key
    if not isinstance(key, str):
        raise TypeError(f"a key is a string, not {key!r}")
    return str.__str__(key)


@cython.final
cdef class Slot:
    """Where the values of one key go. Outlives the values, which are taken out when the key is logged."""
    cdef StoredValues values
    cdef Tail tail  # shared with the values; this one stays when they go

    cdef void hold(self, StoredValues values) noexcept:
        """Hold these empty values, and leave those held so far to whoever has them."""
        cdef StoredValues old = self.values  # dropped at the end, when all is in place
        cdef Tail apart = values.tail
        if old is None:
            self.tail = apart
        else:
            self.tail.cells, apart.cells = apart.cells, self.tail.cells
            old.tail, values.tail = apart, self.tail
        self.values = values


cdef struct Site:
    PyObject *names
    Cells **cells


cdef struct Sites:
    # A hash table from the address of a call site's tuple of names to the cells of those names' slots.
    Site entry[CALL_SITES]
    unsigned int evict


cdef inline size_t home(PyObject *names) noexcept:
    """Where a tuple's entry should be; it may be one of the next PROBES. A tuple of two takes 64 bytes."""
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
    cdef tuple names
    cdef list slots
    cdef Cells **cells
    cdef int sites  # entries of the table

    def __dealloc__(self):
        PyMem_RawFree(self.cells)


cdef bint same_names(PyObject *a, PyObject *b) noexcept:
    """Whether two tuples hold the same strings, as objects: names are interned, so equal ones mostly are."""
    cdef Py_ssize_t n = PyTuple_GET_SIZE(a), i
    if PyTuple_GET_SIZE(b) != n:
        return False
    for i in range(n):
        if PyTuple_GET_ITEM(a, i) is not PyTuple_GET_ITEM(b, i):
            return False
    return True


cdef class EpochStore:
    """Values by key, stored from call sites that run millions of times. The base of EpochLogger."""
    cdef dict slots            # str -> Slot, in the order of the first store
    cdef Lock lock
    cdef bint _keep_values
    cdef Sites sites
    cdef list remembered       # what the entries of `sites` point to: (tuple, Names), so that no other tuple
                               # can come to lie at the address of one that has an entry
    cdef dict known_names      # tuple of names -> Names
    cdef Names last_known      # the last one looked up there: new tuples mostly bring the same names again
    cdef Py_ssize_t forgotten  # how often all of these were forgotten

    def __cinit__(self):
        self.slots = {}
        self.lock = Lock.__new__(Lock)
        self._keep_values = True
        self.forget_sites()

    cdef StoredValues new_values(self, str key):
        return new_values(key, self.lock, self._keep_values)

    cdef Slot slot(self, str key):
        """The slot of a key, made where there is none."""
        cdef Slot slot = self.slots.get(key)
        if slot is None:
            slot = Slot.__new__(Slot)
            slot.hold(self.new_values(key))
            slot = self.slots.setdefault(key, slot)  # another thread may have made it meanwhile
        return slot

    # Call sites ---------------------------------------------------------------------------------------------

    cdef int forget_sites(self) except -1:
        return self.begin_sites([None] * CALL_SITES, {})

    cdef int begin_sites(self, list remembered, dict known_names) except -1:
        """Forget all call sites. What needs memory is given, so that nothing fails here."""
        cdef list old_list = self.remembered
        cdef dict old_dict = self.known_names
        memset(&self.sites, 0, sizeof(Sites))
        self.remembered, self.known_names, self.last_known = remembered, known_names, None
        self.forgotten += 1
        del old_list, old_dict  # what they hold may run other code as it goes, so it goes last
        return 0

    cdef Names names_of(self, PyObject *tuple_of_names):
        """The names of a tuple that has no entry; it gets one where there is room. The names are plain
        strings, so that to look them up runs no code of theirs."""
        cdef Names names = self.last_known
        if names is None or not same_names(<PyObject *>names.names, tuple_of_names):
            names = self.known_names.get(<tuple>tuple_of_names)
            if names is None:
                names = self.learn(<tuple>tuple_of_names)
            else:
                self.last_known = names
        if names.sites < SITES_OF_SAME_NAMES:
            self.enter(tuple_of_names, names)
        return names

    cdef Names learn(self, tuple tuple_of_names):
        """Find or make the slots of a tuple of names; remember them, unless keys are deleted each time."""
        cdef Py_ssize_t n = len(tuple_of_names), j, forgotten
        cdef Names names = None
        if len(self.known_names) >= NAMES_KNOWN:
            self.forget_sites()
        for _ in range(LEARN_TRIES):
            forgotten = self.forgotten
            names = Names.__new__(Names)
            names.names = tuple_of_names
            names.slots = []
            for name in tuple_of_names:
                names.slots.append(self.slot(<str>name))
            names.cells = <Cells **>PyMem_RawMalloc(max(n, <Py_ssize_t>1) * sizeof(Cells *))
            if names.cells == NULL:
                raise MemoryError()
            for j in range(n):
                names.cells[j] = &(<Slot>names.slots[j]).tail.cells
            if forgotten == self.forgotten:
                self.known_names[tuple_of_names] = names
                break
        return names

    cdef int enter(self, PyObject *tuple_of_names, Names names) except -1:
        """Give a tuple an entry, its names' first one at the cost of another's. More of the same names take
        only what is free: tuples that come once and never again would drive each other out."""
        cdef Sites *sites = &self.sites
        cdef tuple kept = (<tuple>tuple_of_names, names)
        cdef size_t first = home(tuple_of_names), i, at
        if self.known_names.get(kept[0]) is not names:  # forgotten meanwhile
            return 0
        at = (first + sites.evict) & (CALL_SITES - 1)
        for i in range(first, first + PROBES):
            if sites.entry[i & (CALL_SITES - 1)].names == NULL:
                at = i & (CALL_SITES - 1)
                break
        else:
            if names.sites:
                return 0
            sites.evict = (sites.evict + 1) % PROBES
            (<Names>(<tuple>self.remembered[at])[1]).sites -= 1
        self.remembered[at] = kept
        sites.entry[at].names, sites.entry[at].cells = tuple_of_names, names.cells
        names.sites += 1
        return 0

    # What the logger above needs ----------------------------------------------------------------------------

    # A call does not hold on to attributes it is made on or with: where other code may run, variables do.

    cdef list all_slots(self):
        cdef dict slots = self.slots
        return list(slots.values())

    cdef int fetch_device(self) except -1:
        """Bring all states of device tensors over, for all keys at once."""
        cdef Slot slot
        cdef StoredValues values
        cdef list waiting, pending, numbers
        cdef Py_ssize_t at = 0
        waiting = []
        for slot in self.all_slots():
            if slot.values.device:
                waiting.append(slot.values)
        if waiting:
            pending = [list(values.device) for values in waiting]
            numbers = _arrays.fetch([state for states in pending for state in states])
            for values, states in zip(waiting, pending):
                values.add_fetched(states, numbers[at:at + len(states)])
                at += len(states)
        return 0

    def _peek(self, key):
        """The Moments of what is stored under `key`; empty where nothing is."""
        cdef Moments m = Moments.__new__(Moments)
        cdef StoredValues values
        cdef Slot slot
        with cython.critical_section(self.lock):
            slot = self.slots.get(as_key(key))
            if slot is not None:
                self.fetch_device()
                values = slot.values
                values.read(&m.m)
        return m

    cdef StoredValues take(self, str key, spin_moments *m):
        """What is stored under a key, which is empty afterwards, and known."""
        cdef StoredValues values, new
        cdef Slot slot
        with cython.critical_section(self.lock):
            slot = self.slot(key)
            self.fetch_device()
            new = self.new_values(key)
            values = slot.values
            values.read(m)
            slot.hold(new)
        return values

    def _take(self, key):
        """The Moments of what is stored under `key`, which is empty afterwards, and known."""
        cdef Moments m = Moments.__new__(Moments)
        self.take(as_key(key), &m.m)
        return m

    def _take_values(self, key):
        """The same Moments, and the values as a list; without kept values, an empty one."""
        cdef Moments m = Moments.__new__(Moments)
        cdef StoredValues values = self.take(as_key(key), &m.m)
        return m, values if values.foreign is None else values.foreign

    def _discard(self, key):
        """Empty `key`, which is known afterwards."""
        cdef Slot slot
        with cython.critical_section(self.lock):
            slot = self.slot(as_key(key))
            slot.hold(self.new_values(as_key(key)))

    def _values(self, key):
        """What is stored under `key`, as a list that may be changed. Raises KeyError, or ValueError where
        values are not kept."""
        cdef dict slots
        cdef Slot slot
        with cython.critical_section(self.lock):
            slots = self.slots
            slot = slots[key]
            if not self._keep_values:
                raise ValueError(
                    f"the values of {key!r} are not kept, only their statistics: "
                    "make the logger with EpochLogger(keep_values=True) to read them"
                )
            return slot.values if slot.values.foreign is None else slot.values.foreign

    def _assign(self, key, values):
        """Let `values`, which stays the caller's, be what is stored under `key`. Raises TypeError for what
        cannot be gone through as a list."""
        cdef StoredValues new = self.new_values(as_key(key))
        cdef Slot slot
        new.foreign = as_sequence(values, key)
        if not self._keep_values:
            new.read(&new.folded)
            new.foreign = None
        with cython.critical_section(self.lock):
            slot = self.slot(as_key(key))
            if values is not slot.values:  # epoch_dict[key] += [...] assigns what it was given
                slot.hold(new)

    def _forget(self, key):
        """Delete `key`. Raises KeyError where it is not known."""
        cdef dict slots, names = {}
        cdef list sites = [None] * CALL_SITES
        with cython.critical_section(self.lock):
            slots = self.slots
            gone = slots.pop(key)  # first, as it may run an __eq__ of the key's, which may store
            self.begin_sites(sites, names)
        del gone

    def _knows(self, key):
        """Whether `key` was stored or assigned, and not deleted since."""
        cdef dict slots
        with cython.critical_section(self.lock):
            slots = self.slots
            return key in slots

    def _counts(self):
        """How much is stored under each key that has something: numbers that change when more is stored.
        Waits for no device, and does not look into what the caller assigned."""
        cdef dict slots, counts = {}
        cdef StoredValues values
        cdef Slot slot
        cdef Py_ssize_t count
        with cython.critical_section(self.lock):
            slots = self.slots
            for key, slot in list(slots.items()):
                values = slot.values
                count = slot.tail.cells.filled + spin_moments_count(&values.folded)
                count += spin_moments_count(&values.fetched) + len(values.device)
                foreign = values.foreign
                if foreign is not None:
                    count += len(foreign)
                if count:
                    counts[key] = count
        return counts

    def _keys(self):
        """The keys stored so far, in the order of their first store."""
        cdef dict slots
        with cython.critical_section(self.lock):
            slots = self.slots
            return list(slots)

    @property
    def keep_values(self):
        """Whether the values of an epoch are kept for `epoch_dict`, or only their statistics."""
        return self._keep_values

    @keep_values.setter
    def keep_values(self, value):
        with cython.critical_section(self.lock):
            if self.slots and bool(value) != self._keep_values:
                raise ValueError(
                    "keep_values cannot change once values are stored: give it when the logger is made"
                )
            self._keep_values = bool(value)

    @property
    def epoch_dict(self):
        """What is stored and not yet logged: behaves as a dict of lists, and changes to it count."""
        return EpochDict(self)

    @epoch_dict.setter
    def epoch_dict(self, mapping):
        cdef EpochStore new = EpochStore.__new__(EpochStore)
        new.lock, new._keep_values = self.lock, self._keep_values
        for key, values in dict(mapping).items():
            new._assign(key, values)
        sites, names = [None] * CALL_SITES, {}
        with cython.critical_section(self.lock):
            self.slots, new.slots = new.slots, self.slots
            self.begin_sites(sites, names)


cdef object as_sequence(object values, object key):
    """What is assigned to a key as it is, or as a list where it can be gone through once only."""
    no_list = isinstance(values, _no_lists) or not hasattr(values, "__iter__")
    if no_list or getattr(values, "ndim", None) == 0:
        raise TypeError(f"what is stored under {key!r} is a list of numbers, not {type(values).__qualname__}")
    return values if hasattr(values, "__len__") else list(values)
