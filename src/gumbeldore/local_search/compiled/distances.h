// Distances between nodes, by the rules of TSPLIB 95 or from a matrix. Nothing of size n x n is kept but a matrix that was given.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

// In this order in `distances.py`.
enum class Rule { EXACT, NEAREST, CEILING, ATT, GEO, MANHATTAN, MAXIMUM, LISTED, LISTED_SMALL };

class Distances {
  public:
    static constexpr const char *NAME = "distances";
    static constexpr double PI = 3.141592, RADIUS = 6378.388;  // TSPLIB's own

    // Coordinates; for GEO latitudes and longitudes in radians.
    Distances(Rule rule, std::vector<double> x, std::vector<double> y);
    // A matrix, row by row: from a node to others.
    Distances(int count, std::vector<double> matrix, bool whole);

    int count() const { return n; }
    bool whole() const { return is_whole; }          // all are whole numbers, and sums of them exact
    bool symmetric() const { return is_symmetric; }
    bool planar() const { return rule < Rule::LISTED; }
    double extent() const { return largest; }        // no distance is larger in size
    double tolerance() const { return is_whole ? 0.5 : 1e-11 * largest; }  // gains below are none
    const std::vector<double> &xs() const { return x; }
    const std::vector<double> &ys() const { return y; }
    bool on_sphere() const { return sphere; }

    double operator()(int a, int b) const {
        switch (rule) {
            case Rule::EXACT: return line(a, b);
            case Rule::NEAREST: return cut(line(a, b) + 0.5);
            case Rule::CEILING: return raised(line(a, b));
            case Rule::LISTED: return listed[(size_t)a * n + b];
            case Rule::LISTED_SMALL: return small[(size_t)a * n + b];
            default: return rare(a, b);
        }
    }

    // The same with nodes in another order: node i is what was order[i].
    Distances permuted(const std::vector<int> &order) const;
    // The same, as a list of them all if there are at most so many nodes.
    Distances listed_if(int most) const;
    // Of an asymmetric matrix the symmetric one of twice as many nodes: i is where node i is left, n + i where it is reached; the two are joined
    // by an edge that no search gives up (Jonker and Volgenant 1983).
    Distances doubled() const;

  private:
    int n;
    Rule rule;
    std::vector<double> x, y, listed;
    std::vector<int32_t> small;
    bool is_whole, is_symmetric = true, sphere = false;
    double largest = 0;

    static double cut(double value) { return (double)(int64_t)value; }
    static double raised(double value) { return cut(value) + (cut(value) < value); }
    double line(int a, int b) const {
        double across = x[a] - x[b], along = y[a] - y[b];
        return std::sqrt(across * across + along * along);
    }
    double rare(int a, int b) const;
    void list(std::vector<double> matrix);
};

// The `size` nodes that are nearest to each node in the plane or on the sphere, nearest first by the rule; of a matrix, by its rows.
std::vector<int> nearest(const Distances &distance, int size);

// The same, but the last four are the nearest ones in the four quadrants around a node, where these are not among the first: clusters are joined.
std::vector<int> near_all_around(const Distances &distance, int size);

// Nodes along a curve that fills the plane (Hilbert), so that neighbours are near each other in memory.
std::vector<int> along_curve(const Distances &distance);
