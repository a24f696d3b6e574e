// FailureDetector: whether members live, after SWIM [SWIM] with Lifeguard's
// local health [Lifeguard].
//
//   - Each period one linked member is probed, in turns of a shuffled order, so
//     that each of a node's links is used within as many periods. All who are
//     linked with a member do that. Now and then one that should be linked and
//     is not is probed, so that a member without any link is found, too.
//   - Without an ack in time, others who are linked are asked to pass the probe
//     on; where a link was lost, at once. Without an ack then, the member is
//     suspected. Of one that others suspect, a linked node makes sure at once.
//   - A suspicion that is not refuted in time makes a member dead. The more
//     suspect it, the sooner.
//   - The node doubts itself first: late timers, missing receipts and
//     refutations of its own make it more patient. While it did not run, no
//     time passes for those that it waits for.
//
// It judges nobody itself: it tells a Judge, and is told of changes of the
// table (OnMember).
//
// Loop only.
#ifndef DFL_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_
#define DFL_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/base/rng.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/member_frames.h"
#include "daemon/runtime/membership/local_health.h"
#include "daemon/runtime/membership/member_table.h"
#include "daemon/runtime/membership/preset.h"
#include "daemon/runtime/membership/probe_paths.h"
#include "daemon/runtime/membership/suspicions.h"

namespace dfl::runtime {

class FailureDetector {
 public:
  class Judge {
   public:
    virtual ~Judge() = default;
    // `node` did not answer.
    virtual void OnNoAnswer(const NodeId& node) = 0;
    // `node` was suspected for long enough.
    virtual void OnSuspicionOver(const NodeId& node) = 0;
    // A period is over.
    virtual void OnPeriod() = 0;
  };

  // All must outlive it; `self` is in `table`.
  FailureDetector(const NodeId& self, uint64_t seed, ports::Loop& loop,
                  ProbePaths& paths, const MemberTable& table, Judge& judge);
  ~FailureDetector() { loop_.Cancel(timer_); }
  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;

  // Probes nobody and forgets suspicions from now on.
  void Stop();

  void OnPeerUp(const NodeId& peer);
  void OnPeerDown(const NodeId& peer);

  // The table's entry on `node` has changed.
  void OnMember(const NodeId& node);
  // `by` suspects `node`, which is suspected already. True: others should know.
  bool Confirm(const NodeId& node, const NodeId& by);

  // An ack or a receipt for this node. False: it belongs to no probe that is
  // under way.
  bool OnAck(const ports::ProbeAckFrame& frame);

  // This node had to refute.
  void OnRefuted() { health_.Worse(); }

  const LocalHealth& health() const { return health_; }
  int64_t probes_under_way() const {
    return static_cast<int64_t>(probes_.size());
  }

 private:
  struct Probe {
    NodeId target;
    // When it was sent over the target's own link; else InfinitePast.
    absl::Time sent = absl::InfinitePast();
    bool indirect = false;
    int asked = 0;     // to pass it on
    int receipts = 0;  // of those
    absl::Time deadline;
  };
  using Probes = std::map<uint64_t, Probe>;  // by number

  // The more patient of both sides'.
  const Preset& PresetFor(const NodeId& node) const;
  const Preset& OwnPreset() const;
  // By how much an own timer is late that shows a lack of processor time.
  absl::Duration LateFrom() const;

  void Schedule();
  void Wake(absl::Time due);
  // This node did not run for `lag`: others had no chance in that time.
  void MakeUpFor(absl::Duration lag);
  void Period();
  // The next linked member in turn; empty: there is none.
  NodeId NextTarget();
  // A present member that should be linked and is not; empty: there is none.
  NodeId FarTarget();

  ports::ProbeFrame FrameOf(uint64_t number, const NodeId& target) const;
  bool IsProbed(const NodeId& node) const;
  // Probes a linked member, or one that is not.
  void ProbeLinked(const NodeId& target);
  void ProbeFar(const NodeId& target);
  // Asks others to pass the probe on.
  void AskOthers(uint64_t number, Probe& probe);
  void DropProbesOf(const NodeId& node);
  void ProbesOver(absl::Time now);

  const NodeId self_;
  ports::Loop& loop_;
  ProbePaths& paths_;
  const MemberTable& table_;
  Judge& judge_;
  Rng rng_;
  LocalHealth health_;
  Suspicions suspicions_;
  std::set<NodeId> linked_;
  std::vector<NodeId> turn_;  // who is still to be probed in it
  Probes probes_;
  uint64_t last_number_ = 0;
  int64_t periods_ = 0;
  absl::Time next_period_;
  ports::TimerId timer_ = 0;
  absl::Time timer_due_;
  absl::Duration usual_lag_;  // of own timers, smoothed
  bool stopped_ = false;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_
