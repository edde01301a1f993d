// The boundary between Python and compiled code: arguments are checked before a function sees them, exceptions become Python's, the
// interpreter runs on meanwhile, and signals are heard within long work.
//
//     void improve(View<const float, 3> points, View<int64_t, 2> tours, Whole rounds);
//     static PyMethodDef methods[] = {entry<improve>("improve(points, tours, rounds)"), END};
//
// An argument's type says what it must be: an array of a kind and a number of axes (`views.h`), a number, an object that was made before.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <exception>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include "views.h"
#include "watch.h"

namespace boundary {

// Objects of Python that this code owns.
class Object {
  public:
    explicit Object(PyObject *object) : object(object) {}
    Object(const Object &) = delete;
    Object &operator=(const Object &) = delete;
    ~Object() { Py_XDECREF(object); }
    operator PyObject *() const { return object; }

  private:
    PyObject *object;
};

// While it lives, other threads of Python may run.
class Released {
  public:
    Released() : state(PyEval_SaveThread()) {}
    Released(const Released &) = delete;
    Released &operator=(const Released &) = delete;
    ~Released() { PyEval_RestoreThread(state); }

  private:
    PyThreadState *state;
};

// An object of C++ that Python holds. One thread at a time may work with it.
template <class T> struct Held {
    T object;
    std::atomic<bool> busy{false}, stopped{false};
    template <class... A> explicit Held(A &&...arguments) : object(std::forward<A>(arguments)...) {}
};

template <class T> class Borrowed {
  public:
    explicit Borrowed(Held<T> &held) : held(&held) {
        if (held.busy.exchange(true)) throw Refused("This object is at work in another thread.");
    }
    Borrowed(Borrowed &&other) : held(std::exchange(other.held, nullptr)) {}
    ~Borrowed() {
        if (held) held->busy = false;
    }
    T *operator->() const { return &held->object; }
    T &operator*() const { return held->object; }
    std::atomic<bool> &stopped() const { return held->stopped; }

  private:
    Held<T> *held;
};

// How an argument is read. Each is alive until the call is over.
template <class T> class Argument;

template <class T, int axes> class Argument<View<T, axes>> {
  public:
    Argument(PyObject *object, const std::string &name) {
        int flags = PyBUF_FORMAT | PyBUF_ND | (std::is_const_v<T> ? 0 : PyBUF_WRITABLE);
        if (PyObject_GetBuffer(object, &buffer, flags) != 0) {
            PyErr_Clear();
            throw Refused("`" + name + "` must be a contiguous array" + (std::is_const_v<T> ? "." : " that can be written."));
        }
        try {
            view = View<T, axes>::of(buffer.buf, buffer.ndim, buffer.shape, buffer.itemsize, buffer.format, name);
        } catch (...) {
            PyBuffer_Release(&buffer);
            throw;
        }
    }
    Argument(const Argument &) = delete;
    Argument &operator=(const Argument &) = delete;
    ~Argument() { PyBuffer_Release(&buffer); }
    const View<T, axes> &value() const { return view; }

  private:
    Py_buffer buffer;
    View<T, axes> view;
};

// An array, or None.
template <class T, int axes> class Argument<std::optional<View<T, axes>>> {
  public:
    Argument(PyObject *object, const std::string &name) {
        if (object != Py_None) given.emplace(object, name);
    }
    std::optional<View<T, axes>> value() const { return given ? std::optional(given->value()) : std::nullopt; }

  private:
    std::optional<Argument<View<T, axes>>> given;
};

template <> class Argument<int64_t> {
  public:
    Argument(PyObject *object, const std::string &name) : number(PyLong_AsLongLong(object)) {
        if (number != -1 || !PyErr_Occurred()) return;
        PyErr_Clear();
        throw Refused("`" + name + "` must be a whole number of at most 64 bits.");
    }
    int64_t value() const { return number; }

  private:
    int64_t number;
};

template <> class Argument<double> {
  public:
    Argument(PyObject *object, const std::string &name) : number(PyFloat_AsDouble(object)) {
        if (number != -1 || !PyErr_Occurred()) return;
        PyErr_Clear();
        throw Refused("`" + name + "` must be a number.");
    }
    double value() const { return number; }

  private:
    double number;
};

template <> class Argument<bool> {
  public:
    Argument(PyObject *object, const std::string &name) : yes(object == Py_True) {
        if (object != Py_True && object != Py_False) throw Refused("`" + name + "` must be True or False.");
    }
    bool value() const { return yes; }

  private:
    bool yes;
};

template <class T> Held<T> &held(PyObject *object, const std::string &name) {
    if (!PyCapsule_IsValid(object, T::NAME)) throw Refused("`" + name + "` must be a " + T::NAME + ".");
    return *static_cast<Held<T> *>(PyCapsule_GetPointer(object, T::NAME));
}

template <class T> class Argument<Borrowed<T>> {
  public:
    Argument(PyObject *object, const std::string &name) : borrowed(held<T>(object, name)) {}
    Borrowed<T> value() { return std::move(borrowed); }

  private:
    Borrowed<T> borrowed;
};

// Only its flag, which any thread may set.
template <class T> class Argument<Held<T> *> {
  public:
    Argument(PyObject *object, const std::string &name) : pointer(&held<T>(object, name)) {}
    Held<T> *value() const { return pointer; }

  private:
    Held<T> *pointer;
};

inline PyObject *returned(int64_t number) { return PyLong_FromLongLong(number); }
inline PyObject *returned(double number) { return PyFloat_FromDouble(number); }
inline PyObject *returned(bool yes) { return PyBool_FromLong(yes); }
template <class T> PyObject *returned(std::unique_ptr<Held<T>> object) {
    auto end = [](PyObject *capsule) { delete static_cast<Held<T> *>(PyCapsule_GetPointer(capsule, T::NAME)); };
    PyObject *capsule = PyCapsule_New(object.get(), T::NAME, end);
    if (capsule) object.release();
    return capsule;
}

// Raises the project's own error, which is a ValueError.
inline void refuse(const char *message) {
    Object module(PyImport_ImportModule("gumbeldore.errors"));
    if (!module) return;
    Object type(PyObject_GetAttrString(module, "SettingsError"));
    if (type) PyErr_SetString(type, message);
}

inline std::string trimmed(const std::string &text) {
    size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

// The names between the brackets of "function(one, two)".
inline std::vector<std::string> names_of(const std::string &signature) {
    std::vector<std::string> names;
    for (size_t at = signature.find('('), end; at + 1 < signature.size() && signature[at] != ')'; at = end) {
        end = signature.find_first_of(",)", at + 1);
        if (std::string name = trimmed(signature.substr(at + 1, end - at - 1)); !name.empty()) names.push_back(name);
    }
    return names;
}

template <auto function> struct Entry;

template <class R, class... A, R (*function)(A...)> struct Entry<function> {
    static inline std::string name;
    static inline std::vector<std::string> names;

    static PyObject *call(PyObject *, PyObject *const *arguments, Py_ssize_t count) {
        try {
            if (count != (Py_ssize_t)sizeof...(A))
                throw Refused("`" + name + "` takes " + std::to_string(sizeof...(A)) + " arguments, got " + std::to_string(count) + ".");
            return invoke(arguments, std::index_sequence_for<A...>{});
        } catch (const Interrupted &) {  // the error of a signal's handler is set
        } catch (const Refused &error) {
            refuse(error.what());
        } catch (const std::bad_alloc &) {
            PyErr_Format(PyExc_MemoryError, "`%s` needs more memory than there is.", name.c_str());
        } catch (const std::exception &error) {
            PyErr_Format(PyExc_RuntimeError, "`%s` failed: %s", name.c_str(), error.what());
        }
        return nullptr;
    }

  private:
    template <size_t... i> static PyObject *invoke(PyObject *const *arguments, std::index_sequence<i...>) {
        std::tuple<Argument<std::decay_t<A>>...> read{Given{arguments[i], names[i]}...};
        if constexpr (std::is_void_v<R>) {
            {
                Released released;
                function(std::get<i>(read).value()...);
            }
            return Py_NewRef(Py_None);
        } else {
            return returned([&] {
                Released released;
                return function(std::get<i>(read).value()...);
            }());
        }
    }

    // Makes an argument in its place.
    struct Given {
        PyObject *object;
        const std::string &name;
        template <class T> operator Argument<T>() const { return Argument<T>(object, name); }
    };
};

// A function for the table of a module, by its signature.
template <auto function> PyMethodDef entry(const char *signature) {
    using E = Entry<function>;
    E::name = std::string(signature).substr(0, std::string(signature).find('('));
    E::names = names_of(signature);
    return {E::name.c_str(), (PyCFunction)(void (*)(void))E::call, METH_FASTCALL, signature};
}

constexpr PyMethodDef END = {nullptr, nullptr, 0, nullptr};

}  // namespace boundary
