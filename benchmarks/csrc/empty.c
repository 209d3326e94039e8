/* A type whose method `store` does nothing, called the way spinstat's is: METH_FASTCALL | METH_KEYWORDS.
 * What is left is the price that the interpreter asks for any call with these arguments.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *empty_store(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    (void)self, (void)args, (void)nargs, (void)names;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"store", (PyCFunction)(void (*)(void))empty_store, METH_FASTCALL | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, NULL}};

static PyType_Spec spec = {
    .name = "empty.Empty",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "empty", .m_size = -1};

PyMODINIT_FUNC PyInit_empty(void) {
    PyObject *made = PyModule_Create(&module);
    if (made == NULL) return NULL;
    PyObject *type = PyType_FromSpec(&spec);
    if (type == NULL || PyModule_AddObject(made, "Empty", type) < 0) {
        Py_XDECREF(type);
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
