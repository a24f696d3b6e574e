// What one end of an edge knows of the mass that went over it (mass_ledger.h).
// Two ends whose books agree have lost nothing between them: what the one gave
// is with the other, or is still to be sent.
#ifndef DFL_CORE_ALGORITHM_EDGE_BOOKS_H_
#define DFL_CORE_ALGORITHM_EDGE_BOOKS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace dfl::core {

// Sums are of the probe <r, mass> (Probe). All 0: nothing was given or taken.
struct EdgeBooks {
  // Given to the other end and known to be taken: the number of the newest
  // parcel, and the sum over all.
  uint64_t delivered = 0;
  double given = 0;
  // The parcel that is out: its number and its probe. 0: none is.
  uint64_t out = 0;
  double given_out = 0;
  // Taken from the other end: the same.
  uint64_t taken_sequence = 0;
  double taken = 0;

  friend bool operator==(const EdgeBooks& a, const EdgeBooks& b) {
    return a.delivered == b.delivered && a.given == b.given && a.out == b.out &&
           a.given_out == b.given_out && a.taken_sequence == b.taken_sequence &&
           a.taken == b.taken;
  }
};

// Whether what `giver` gave is what `taker` took, but for the parcel that is
// out, which may have been taken or not.
inline bool AgreeOneWay(const EdgeBooks& giver, const EdgeBooks& taker) {
  const auto same = [](double a, double b) {
    return std::fabs(a - b) <=
           1e-6 * std::max({1.0, std::fabs(a), std::fabs(b)});
  };
  if (taker.taken_sequence == giver.delivered) {
    return same(giver.given, taker.taken);
  }
  return giver.out != 0 && taker.taken_sequence == giver.out &&
         same(giver.given + giver.given_out, taker.taken);
}

inline bool Agree(const EdgeBooks& a, const EdgeBooks& b) {
  return AgreeOneWay(a, b) && AgreeOneWay(b, a);
}

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_EDGE_BOOKS_H_
