// Arrays of Python as compiled code sees them: of a known kind and number of axes, with their sizes.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace boundary {

// What was given is not what it should be. The message names it, in one line.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void require(bool holds, const std::string &message) {
    if (!holds) throw Refused(message);
}

template <class T> const char *kind_of() {
    if (std::is_same_v<T, float>) return "float32";
    if (std::is_same_v<T, double>) return "float64";
    return sizeof(T) == 4 ? "int32" : "int64";
}

template <class T> bool is_kind(const char *format, size_t size) {
    if (format == nullptr || size != sizeof(T)) return false;
    if (*format == '@' || *format == '=' || *format == '<') format++;
    return *format && format[1] == 0 && std::strchr(std::is_floating_point_v<T> ? "fd" : "ilq", *format);
}

template <class T, int axes> class View {
    using Kind = std::remove_const_t<T>;
    static_assert(std::is_same_v<Kind, float> || std::is_same_v<Kind, double> || (std::is_integral_v<Kind> && sizeof(Kind) >= 4));

  public:
    template <class Size>
    static View of(void *data, int found, const Size *sizes, size_t item, const char *format, const std::string &name) {
        if (!is_kind<Kind>(format, item)) throw Refused("`" + name + "` must be an array of " + kind_of<Kind>() + ".");
        if (found != axes)
            throw Refused("`" + name + "` must have " + std::to_string(axes) + (axes == 1 ? " axis" : " axes") + ", got " + std::to_string(found) + ".");
        View view;
        view.first = static_cast<T *>(data);
        for (int axis = 0; axis < axes; axis++) view.sizes[axis] = sizes[axis];
        view.name = &name;
        return view;
    }

    int64_t size(int axis) const { return sizes[axis]; }
    int64_t count() const {
        int64_t product = 1;
        for (int64_t each : sizes) product *= each;
        return product;
    }
    T *data() const { return first; }
    T *begin() const { return first; }
    T *end() const { return first + count(); }
    T &operator[](int64_t index) const {
        static_assert(axes == 1);
        return first[index];
    }

    // The i-th part along the first axis.
    T *part(int64_t index) const { return first + index * (sizes[0] ? count() / sizes[0] : 0); }

    // Refuses other sizes; -1 is any.
    const View &shaped(std::initializer_list<int64_t> wanted) const {
        int axis = 0;
        for (int64_t each : wanted) {
            if (each >= 0 && each != sizes[axis])
                throw Refused("Axis " + std::to_string(axis) + " of `" + *name + "` must have the size " +
                                                         std::to_string(each) + ", got " + std::to_string(sizes[axis]) + ".");
            axis++;
        }
        return *this;
    }

    // Refuses numbers below or above; NaN is neither.
    const View &between(Kind least, Kind most) const {
        for (T each : *this)
            if (!(each >= least && each <= most))
                throw Refused("`" + *name + "` must be in " + shown(least) + " .. " + shown(most) + ", got " + shown(each) + ".");
        return *this;
    }

    const std::string &called() const { return *name; }

  private:
    T *first = nullptr;
    int64_t sizes[axes] = {};
    const std::string *name = nullptr;

    static std::string shown(Kind value) {
        if constexpr (std::is_integral_v<Kind>) {
            return std::to_string(value);
        } else {
            char text[32];
            std::snprintf(text, sizeof text, "%g", (double)value);
            return text;
        }
    }
};

}  // namespace boundary
