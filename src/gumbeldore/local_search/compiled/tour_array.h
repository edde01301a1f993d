// A tour as an array: who follows whom, who lies between whom, and the exchange of two edges by turning the shorter side round.
#pragma once

#include <vector>

class TourArray {
  public:
    explicit TourArray(std::vector<int> order) : n((int)order.size()), at(std::move(order)), place(n) {
        for (int i = 0; i < n; i++) place[at[i]] = i;
    }

    const std::vector<int> &order() const { return at; }
    int city(int position) const { return at[position >= n ? position - n : position]; }
    int position(int city) const { return place[city]; }
    int next(int city) const { return place[city] + 1 == n ? at[0] : at[place[city] + 1]; }
    int previous(int city) const { return place[city] == 0 ? at[n - 1] : at[place[city] - 1]; }
    // How many steps lead from one city to another.
    int way(int from, int to) const {
        int steps = place[to] - place[from];
        return steps < 0 ? steps + n : steps;
    }

    // Edges (a, b) and (c, d), which are passed in this order in one of the two directions, become (a, c) and (b, d).
    void exchange(int a, int b, int c, int d) {
        journal.push_back({a, b, c, d});
        replace(a, b, c, d);
    }

    // Takes back all exchanges beyond the first ones.
    void undo(size_t kept = 0) {
        for (; journal.size() > kept; journal.pop_back()) {
            const Exchange &each = journal.back();
            replace(each.a, each.c, each.b, each.d);
        }
    }
    // The order before all exchanges that are not kept.
    std::vector<int> earlier() const {
        TourArray same = *this;
        same.undo();
        return same.at;
    }
    size_t exchanges() const { return journal.size(); }
    void keep() { journal.clear(); }

  private:
    struct Exchange {
        int a, b, c, d;
    };
    int n;
    std::vector<int> at, place;
    std::vector<Exchange> journal;

    void replace(int a, int b, int c, int d) {
        if (next(a) != b) {
            std::swap(a, b);
            std::swap(c, d);
        }
        int inner = way(b, c) + 1;
        2 * inner <= n ? reverse(place[b], place[c], inner) : reverse(place[d], place[a], n - inner);
    }

    void reverse(int first, int last, int count) {
        for (int i = 0; i < count / 2; i++) {
            int a = at[first], b = at[last];
            at[first] = b;
            place[b] = first;
            at[last] = a;
            place[a] = last;
            if (++first == n) first = 0;
            if (--last < 0) last = n - 1;
        }
    }
};
