// What arguments are checked for beyond their sizes and ranges.

#include "entries.h"

namespace {
// Sees to it that each of so many numbers comes once.
class Once {
  public:
    Once(int64_t count, const char *name) : seen(count, 0), name(name) {}
    void operator()(int64_t number) {
        int64_t last = (int64_t)seen.size() - 1;
        if (number < 0 || number > last)
            throw Refused("`" + name + "` must be in 0 .. " + std::to_string(last) + ", got " + std::to_string(number) + ".");
        if (seen[number]++) throw Refused("`" + name + "` must hold every number once, got " + std::to_string(number) + " twice.");
    }

  private:
    std::vector<char> seen;
    std::string name;
};
}  // namespace

int64_t checked_size(int64_t count, int64_t least, const char *items) {
    constexpr int64_t MOST = 1 << 28;
    require(count >= least && count <= MOST, std::string("The number of ") + items + " must be in " + std::to_string(least) + " .. " +
                                                 std::to_string(MOST) + ", got " + std::to_string(count) + ".");
    return count;
}

int checked_threads(int64_t threads) {
    require(threads >= 1 && threads <= 4096, "`threads` must be in 1 .. 4096, got " + std::to_string(threads) + ".");
    return (int)threads;
}

void check_permutation(const int64_t *numbers, int64_t count, const char *name) {
    Once once(count, name);
    for (int64_t i = 0; i < count; i++) once(numbers[i]);
}

void check_routes(const int64_t *actions, const int64_t *demands, int64_t capacity, int64_t nodes) {
    Once once(2 * (nodes - 1), "actions");
    for (int64_t i = 0; i < nodes - 1; i++) once(actions[i]);
    int64_t load = 0;
    std::vector<char> served(nodes, 0);
    for (int64_t i = 0; i < nodes - 1; i++) {
        int64_t node = actions[i] / 2 + 1;
        if (served[node]++) throw Refused("`actions` must serve every customer once, got customer " + std::to_string(node - 1) + " twice.");
        load = (actions[i] % 2 ? 0 : load) + demands[node];
        if (load > capacity) throw Refused("A route must load at most the capacity, " + std::to_string(capacity) + ", got " + std::to_string(load) + ".");
    }
}

void check_machines(const int32_t *machines, int64_t jobs, int64_t operations) {
    for (int64_t job = 0; job < jobs; job++) {
        Once once(operations, "machines");
        for (int64_t i = 0; i < operations; i++) once(machines[job * operations + i]);
    }
}

void check_schedule(const int64_t *actions, int64_t jobs, int64_t operations) {
    std::vector<int64_t> done(jobs, 0);
    for (int64_t i = 0; i < jobs * operations; i++) {
        int64_t job = actions[i];
        if (job < 0 || job >= jobs) throw Refused("`actions` must be in 0 .. " + std::to_string(jobs - 1) + ", got " + std::to_string(job) + ".");
        if (done[job]++ == operations)
            throw Refused("`actions` must hold every job " + std::to_string(operations) + " times, got " + std::to_string(job) + " more often.");
    }
}
