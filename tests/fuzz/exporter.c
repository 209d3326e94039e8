/* An object that gives whatever Py_buffer it is told to: formats, shapes and strides that no library gives.

   Exporter(memory, offset, format, itemsize, shape, strides, length, with_strides, error):
   memory is bytes, and every item that shape and strides reach must lie in it; format is bytes or None; error is
   what is raised instead of giving a buffer, or None. exporter.given: how many buffers have not been released. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { DIMENSIONS = 64 };

typedef struct {
    PyObject_HEAD
    PyObject *memory, *format, *error;
    Py_ssize_t offset, itemsize, length, given;
    Py_ssize_t shape[DIMENSIONS], strides[DIMENSIONS];
    int ndim, with_strides;
} Exporter;

static int numbers(PyObject *tuple, Py_ssize_t *to)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        to[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
        if (to[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *memory, *format, *shape, *strides, *error;
    Py_ssize_t offset, itemsize, length;
    int with_strides;
    if (!PyArg_ParseTuple(args, "SnOnO!O!npO", &memory, &offset, &format, &itemsize, &PyTuple_Type, &shape,
                          &PyTuple_Type, &strides, &length, &with_strides, &error))
        return NULL;
    if (PyTuple_GET_SIZE(shape) > DIMENSIONS || PyTuple_GET_SIZE(strides) != PyTuple_GET_SIZE(shape)) {
        PyErr_SetString(PyExc_ValueError, "shape and strides do not fit");
        return NULL;
    }
    Exporter *self = (Exporter *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->memory = Py_NewRef(memory), self->format = Py_NewRef(format), self->error = Py_NewRef(error);
    self->offset = offset, self->itemsize = itemsize, self->length = length, self->with_strides = with_strides;
    self->ndim = (int)PyTuple_GET_SIZE(shape);
    if (numbers(shape, self->shape) < 0 || numbers(strides, self->strides) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void drop(PyObject *object)
{
    Exporter *self = (Exporter *)object;
    Py_XDECREF(self->memory);
    Py_XDECREF(self->format);
    Py_XDECREF(self->error);
    Py_TYPE(object)->tp_free(object);
}

static int get(PyObject *object, Py_buffer *view, int flags)
{
    Exporter *self = (Exporter *)object;
    view->obj = NULL;
    if (self->error != Py_None) {
        PyErr_SetString(self->error, "as it was told to");
        return -1;
    }
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "not writable");
        return -1;
    }
    view->buf = PyBytes_AS_STRING(self->memory) + self->offset;
    view->len = self->length, view->itemsize = self->itemsize, view->readonly = 1, view->ndim = self->ndim;
    view->format = (flags & PyBUF_FORMAT) && self->format != Py_None ? PyBytes_AS_STRING(self->format) : NULL;
    view->shape = self->ndim && (flags & PyBUF_ND) ? self->shape : NULL;
    view->strides = self->ndim && (flags & PyBUF_STRIDES) == PyBUF_STRIDES && self->with_strides
                        ? self->strides
                        : NULL;
    view->suboffsets = NULL, view->internal = NULL;
    view->obj = Py_NewRef(object);
    self->given++;
    return 0;
}

static void release(PyObject *object, Py_buffer *view)
{
    (void)view;
    ((Exporter *)object)->given--;
}

static PyObject *get_given(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(((Exporter *)object)->given);
}

static PyBufferProcs buffer = {get, release};
static PyGetSetDef attributes[] = {{"given", get_given, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyTypeObject type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "exporter.Exporter",
    .tp_basicsize = sizeof(Exporter),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = make,
    .tp_dealloc = drop,
    .tp_as_buffer = &buffer,
    .tp_getset = attributes,
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "exporter", .m_size = -1};

PyMODINIT_FUNC PyInit_exporter(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddType(made, &type) < 0)
        return NULL;
    return made;
}
