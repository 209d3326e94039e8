# The stored values of a logger as a dict of lists.


class EpochDict(MutableMapping):
    """A logger's stored values as a dict of lists. It is a view: the logger sees every change."""

    __slots__ = ("_store", "__weakref__")

    def __init__(self, store):
        if not isinstance(store, EpochStore):
            raise TypeError(f"it shows the values of a logger, not those of a {type(store).__qualname__}")
        self._store = store

    @property
    def __class__(self):
        """dict, for isinstance: pandas makes columns of dicts, and rows of the keys of any other mapping."""
        return dict

    def __getitem__(self, key):
        return self._store._values(key)

    def __setitem__(self, key, values):
        self._store._assign(key, values)

    def __delitem__(self, key):
        self._store._forget(key)

    def __iter__(self):
        return iter(self._store._keys())

    def __reversed__(self):
        return reversed(self._store._keys())

    def __len__(self):
        return len(self._store._keys())

    def __contains__(self, key):
        return self._store._knows(key)

    def popitem(self):
        """Take out and return the last key with its values. Raises KeyError where there is none."""
        keys = self._store._keys()
        if not keys:
            raise KeyError("popitem(): no key is stored")
        key = keys.pop()
        return key, self.pop(key)

    def clear(self):
        """Forget all keys and values."""
        self._store.epoch_dict = {}

    def copy(self):
        """A plain dict of what is stored; the lists are the logger's own."""
        return dict(self)

    def __or__(self, other):
        return dict(self) | dict(other) if isinstance(other, Mapping) else NotImplemented

    def __ror__(self, other):
        return dict(other) | dict(self) if isinstance(other, Mapping) else NotImplemented

    def __ior__(self, other):
        self.update(other)
        return self

    def __repr__(self):
        store = self._store
        return "{" + ", ".join([f"{key!r}: {self._shown(store, key)}" for key in store._keys()]) + "}"

    @staticmethod
    def _shown(store, key):
        if store.keep_values:
            return repr(store._values(key))
        return f"<{store._peek(key).count} numbers, not kept>"

    def __reduce__(self):
        return dict, ({key: list(values) for key, values in self.items()},)

    def __copy__(self):
        return dict(self)

    def __deepcopy__(self, memo):
        from copy import deepcopy
        return {key: deepcopy(values, memo) for key, values in self.items()}
