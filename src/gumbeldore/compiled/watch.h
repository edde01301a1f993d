// Long work asks its watch whether to go on: until the time is up, somebody else says stop, or a signal arrives.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

namespace boundary {

// A signal's handler raised an error, which is set.
struct Interrupted {};

class Watch {
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    static constexpr double LISTEN = 0.02;  // seconds between looks at signals

  public:
    // Without `seconds`, or if they are not finite, there is no end.
    explicit Watch(double seconds = INFINITY, const std::atomic<bool> *stopped = nullptr)
        : stopped(stopped), owner(std::this_thread::get_id()), begin(Clock::now()), seconds(seconds) {}

    // Whether time is up. Cheap, but reads a clock. Throws `Interrupted`.
    bool over() {
        double now = Seconds(Clock::now() - begin).count();
        if (now >= heard + LISTEN && std::this_thread::get_id() == owner) {
            heard = now;
            listen();
        }
        return now >= seconds || (stopped && stopped->load(std::memory_order_relaxed));
    }

    double spent() const { return Seconds(Clock::now() - begin).count(); }

  private:
    const std::atomic<bool> *stopped;
    std::thread::id owner;
    Clock::time_point begin;
    double seconds, heard = 0;

    // Python's handlers run in its main thread only; elsewhere this does nothing.
    static void listen() {
        PyGILState_STATE state = PyGILState_Ensure();
        bool raised = PyErr_CheckSignals() != 0;
        PyGILState_Release(state);
        if (raised) throw Interrupted();
    }
};

// Errors of parallel loops, which must not leave them: the first one is kept, and what has not begun is left out.
class Errors {
  public:
    template <class Work> void run(Work work) {
        if (failed) return;
        try {
            work();
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex);
            if (!failed) first = std::current_exception();
            failed = true;
        }
    }
    void rethrow() const {
        if (failed) std::rethrow_exception(first);
    }

  private:
    std::atomic<bool> failed{false};
    std::mutex mutex;
    std::exception_ptr first;
};

}  // namespace boundary
