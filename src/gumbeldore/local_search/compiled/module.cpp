// An empty Python module, so that tools build, package and find the file. Its functions are called through ctypes.

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_compiled", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__compiled(void) { return PyModule_Create(&module); }
