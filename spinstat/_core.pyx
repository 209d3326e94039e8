# cython: language_level=3
# cython: freethreading_compatible=True
# cython: boundscheck=False
# cython: wraparound=False
# cython: initializedcheck=False
# cython: nonecheck=False
# cython: cdivision=True
# cython: embedsignature=False
# cython: auto_pickle=False
"""The compiled part: moments of buffers, the store path, rows for the reduction. No logging."""

import os
import sys

cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_SIMPLE, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_IsContiguous, PyBuffer_Release,
    PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_Check
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.memoryview cimport PyMemoryView_FromObject
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset, strlen

from spinstat.moments cimport *

from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import numpy as np

from spinstat import _arrays

__all__ = [
    "ROUND_KEYS",
    "ROW_SIZE",
    "EpochDict",
    "EpochStore",
    "Message",
    "Moments",
    "Result",
    "RowInfo",
    "StoredValues",
    "merge_rows",
    "moments",
    "own_results",
    "target",
]


def target():
    """The name of the kernels in use: the best that this processor has, or what SPINSTAT_TARGET forces.

    Examples:
        >>> import spinstat
        >>> spinstat.target() in ("x86_v4", "x86_v3", "baseline")
        True
    """
    return spin_target_current().decode()


cdef int _select_target() except -1:
    names = []
    cdef size_t i = 0
    while spin_target_name(i) != NULL:
        if spin_target_supported(i):
            names.append(spin_target_name(i).decode())
        i += 1
    forced = os.environ.get("SPINSTAT_TARGET") or None
    cdef bytes name = None if forced is None else os.fsencode(forced)
    cdef const char *wanted = NULL
    if name is not None:
        wanted = name
    cdef int failed = spin_target_select(wanted)
    if failed:
        why = "this processor does not support it" if failed == -2 else "there is no such target"
        raise ImportError(
            f"SPINSTAT_TARGET={forced}: {why}. Valid here: {', '.join(names)}; or unset it for the best one"
        )
    return 0


_select_target()

include "_buffers.pxi"
include "_moments.pxi"
include "_blocks.pxi"
include "_values.pxi"
include "_list.pxi"
include "_store.pxi"
include "_epoch_dict.pxi"
include "_calls.pxi"
include "_rows.pxi"
