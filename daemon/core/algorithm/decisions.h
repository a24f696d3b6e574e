// Randomness by name: what an algorithm leaves to chance.
#ifndef DFL_CORE_ALGORITHM_DECISIONS_H_
#define DFL_CORE_ALGORITHM_DECISIONS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::core {

// What an algorithm leaves to chance, by name, so that a test can script it.
class Decisions {
 public:
  virtual ~Decisions() = default;

  // `count` of `candidates`, uniformly without replacement, in any order;
  // 0 <= count <= candidates.size().
  virtual std::vector<NodeId> ChooseNeighbours(
      absl::Span<const NodeId> candidates, int64_t count) = 0;

  // A fresh name for the coordinates of one message to `to`.
  virtual uint64_t NameCoordinates(const NodeId& to) = 0;

  // One value of [range.lo, range.hi], uniformly. The same for every call of
  // one node with the same purpose and range: a node draws once.
  virtual int64_t DrawFrom(absl::string_view purpose, IntRange range) = 0;

  // One value of [range.lo, range.hi], uniformly, and another one each time.
  virtual int64_t DrawAnew(absl::string_view purpose, IntRange range) = 0;

  // True with `probability`: whether `purpose` happens this time, on the way to
  // `peer` or, when that is oneself, here.
  virtual bool Happens(absl::string_view purpose, const NodeId& peer,
                       double probability) = 0;

  // `count` different places of [0, candidates), uniformly, in any order. Every
  // node of the run with the seed `run_seed` that asks with the same arguments
  // is told the same, so that nodes know of each other's draws.
  virtual std::vector<int64_t> ChooseTogether(uint64_t run_seed,
                                              absl::string_view purpose,
                                              int64_t round, int64_t candidates,
                                              int64_t count) = 0;

  // A time to wait, exponential with the mean `mean` > 0: of a Poisson process.
  virtual double DrawWait(absl::string_view purpose, double mean) = 0;

  // `count` of the coordinates [0, n), uniformly without replacement, in
  // increasing order; 0 <= count <= n.
  virtual std::vector<int64_t> ChooseCoordinates(absl::string_view purpose,
                                                 int64_t n, int64_t count) = 0;
};

// Where SeededDecisions stand, for a checkpoint.
struct DecisionsState {
  uint64_t seed = 0;
  uint64_t stream = 0;
  // The state of each generator that was drawn from, by its purpose.
  std::map<std::string, std::array<uint64_t, 4>> generators;

  friend bool operator==(const DecisionsState& a, const DecisionsState& b) {
    return a.seed == b.seed && a.stream == b.stream &&
           a.generators == b.generators;
  }
};

// Decisions from a seed. Each purpose has a generator of its own, made when it
// is first drawn from, so that drawing for one purpose never changes what is
// drawn for another.
class SeededDecisions : public Decisions {
 public:
  // `seed` should differ between nodes: DeriveSeed(plan.seed, node name).
  // `stream` gives other neighbours and coordinates (a restarted node must not
  // repeat its own), while what is drawn once stays: DrawFrom ignores it.
  explicit SeededDecisions(uint64_t seed, uint64_t stream = 0)
      : seed_(seed), stream_(stream) {}

  std::vector<NodeId> ChooseNeighbours(absl::Span<const NodeId> candidates,
                                       int64_t count) override;
  uint64_t NameCoordinates(const NodeId& to) override;
  int64_t DrawFrom(absl::string_view purpose, IntRange range) override;
  int64_t DrawAnew(absl::string_view purpose, IntRange range) override;
  bool Happens(absl::string_view purpose, const NodeId& peer,
               double probability) override;
  std::vector<int64_t> ChooseTogether(uint64_t run_seed,
                                      absl::string_view purpose, int64_t round,
                                      int64_t candidates,
                                      int64_t count) override;
  double DrawWait(absl::string_view purpose, double mean) override;
  std::vector<int64_t> ChooseCoordinates(absl::string_view purpose, int64_t n,
                                         int64_t count) override;

  DecisionsState ExportState() const;

  // Goes on from `state`, bit for bit, whatever seed and stream these decisions
  // had.
  // Errors, which change nothing:
  //   INVALID_ARGUMENT  a generator that is all zeros, from which nothing but
  //                     zeros would come.
  absl::Status ImportState(const DecisionsState& state);

 private:
  Rng& For(absl::string_view purpose);

  uint64_t seed_;
  uint64_t stream_;
  std::map<std::string, Rng, std::less<>> generators_;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_DECISIONS_H_
