// Which models of neighbours lie too far away to be mixed with. A distance here
// is the root mean square of the differences to the node's own model, over the
// coordinates that came.
//
// A model is refused when its distance is above both
//   - kNear times the root mean square of the own model, as two honest models
//     of one size are never further apart;
//   - kTimes the usual distance: the largest of the medians of the last kKept
//     distances of each *other* neighbour, so that nobody makes room for
//     itself; of its own where there is no other.
// Both bounds widen with the time apart. A neighbour from which nothing was
// taken for t rounds, or t seconds, may have moved on as long.
//   - The first one is t times as wide, kAtFirst times at most: so much larger
//     may a model have become on a node that is faster than this one. That
//     holds for the round in which it comes back and the next one, until this
//     node has mixed with it.
//   - The second one is (1 + t) times as wide, kWidest times at most. When
//     nothing was taken from anybody for t, it is this node that was away, and
//     there is no such limit.
// So a partition that heals is no attack, and both halves take the other's
// models, however fast each was.
//
// Of the first kFirst models nothing is known yet: their bound is kAtFirst
// times the largest of the own model's root mean square, the usual distance of
// the others and 0.1. It is t times as wide when nothing was taken from anybody
// for t. So a node that refuses everybody never does so for ever.
//
// Pure bookkeeping. It keeps kKept numbers of each neighbour.
#ifndef DFL_RUNTIME_GUARDS_MODEL_DISTANCES_H_
#define DFL_RUNTIME_GUARDS_MODEL_DISTANCES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "daemon/base/ids.h"

namespace dfl::runtime {

class ModelDistances {
 public:
  static constexpr double kNear = 2;
  static constexpr double kTimes = 10;
  static constexpr double kWidest = 10;
  static constexpr double kAtFirst = 100;
  static constexpr int64_t kFirst = 20;
  static constexpr size_t kKept = 16;

  // What is to be judged, and when.
  struct Model {
    double distance = 0;
    double own = 0;     // root mean square of the own model
    int64_t round = 0;  // the node's own
    absl::Time now;
  };

  // The model begins anew: nothing is known.
  void Begin(int64_t round, absl::Time now);
  // Whether a model of `peer` may be taken: nullopt, and it is noted as taken;
  // otherwise the bound that it is beyond.
  std::optional<double> Judge(const NodeId& peer, const Model& model);

 private:
  struct Meeting {
    int64_t round = 0;
    absl::Time when;
  };
  struct Peer {
    std::deque<double> recent;
    Meeting last;
    // The last time apart, and the own round in which it ended.
    double away = 0;
    int64_t back = 0;
  };

  // t: rounds or seconds since `last`, whichever are more.
  static double Apart(const Meeting& last, const Model& model);
  // The largest of the other neighbours' medians; nullopt: there is none.
  std::optional<double> UsualOfOthers(const NodeId& peer) const;
  double Bound(const NodeId& peer, const Model& model) const;

  std::map<NodeId, Peer> peers_;
  Meeting begun_;
  Meeting last_;  // with anybody
  int64_t taken_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GUARDS_MODEL_DISTANCES_H_
