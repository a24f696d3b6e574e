// How patient membership is. Every member says its pace; where two are
// concerned, the more patient counts.
//
//                        lan      wan     cellular
//   period               1 s      5 s     15 s     a node probes one link
//   probe_timeout        0.5 s    3 s     8 s      then others are asked to
//   indirect_timeout     0.5 s    4 s     12 s     then it is suspected
//   suspicion            1.2 s    6 s     20 s     see below
//   batch                20 ms    0.2 s   1 s      news wait for each other
//   forget               5 min    30 min  2 h      what is dead or has left
//
// With N members and C members beside the first who suspect, a suspicion is
// over after
//   least = suspicion * max(1, log10 N)
//   most  = 3 * least
//   max(least, most - (most - least) * log(C + 1) / log(3 + 1))
// ([Lifeguard] IV-B). A node with the local health H (0: well, to 8) waits
// H + 1 times as long for acks, probes H + 1 times as seldom, and begins
// suspicions of H + 1 times the length (IV-A).
#ifndef DFL_RUNTIME_MEMBERSHIP_PRESET_H_
#define DFL_RUNTIME_MEMBERSHIP_PRESET_H_

#include <cstdint>

#include "absl/time/time.h"
#include "daemon/ports/member_frames.h"

namespace dfl::runtime {

struct Preset {
  absl::Duration period;
  absl::Duration probe_timeout;
  absl::Duration indirect_timeout;
  absl::Duration suspicion;
  absl::Duration batch;
  absl::Duration forget;
};

// Linked members who are asked to pass a probe on.
inline constexpr int kIndirectProbes = 3;
// An ack has the time that the link's acks have taken so far, see
// links/link_times.h, between probe_timeout / kProbeFloorShare and
// kProbeCeiling * probe_timeout; probe_timeout before the first.
inline constexpr int kProbeFloorShare = 2;
inline constexpr int kProbeCeiling = 3;
// Beyond so many confirmations a suspicion gets no shorter.
inline constexpr int kMostConfirmations = 3;
inline constexpr int kWorstHealth = 8;
// Each so many periods a member that should be linked and is not is probed.
inline constexpr int kPeriodsToFarProbe = 5;

const Preset& PresetOf(ports::Pace pace);

ports::Pace MorePatient(ports::Pace a, ports::Pace b);

// `least` above, for `members` of them.
absl::Duration LeastSuspicion(const Preset& preset, int64_t members);
// How long a suspicion lasts; confirmations >= 0.
absl::Duration SuspicionTime(absl::Duration least, int64_t confirmations);

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_PRESET_H_
