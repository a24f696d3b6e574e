// The mass ledger: what a node gives away must arrive exactly once.
//
// Gradient tracking and push-sum hand over parts of a vector: the giver deducts
// them and the taker adds them, late or not, once and only once, or the sum over
// all nodes is wrong for ever. Each directed edge has, at its giving end,
//
//   out      at most one parcel, repeated unchanged until it is delivered
//   pending  the sum of what was given meanwhile; it is the next parcel
//
// and at its taking end the number of the last parcel taken: one that was taken
// before is ignored. A parcel carries the newest round it is of; one of a later
// round than the taker's is kept until the taker gets there.
//
//   sum over nodes of (vector + given, not delivered + taken, not added) = 0
//
// A parcel may be written in a format that loses something (MassCode). It carries
// C(pending) then, as its taker decodes it, and pending keeps the rest, which goes
// with what is given next and is owed to nobody until then: C's error is fed back.
//
// Replicas (replica_rounds.h) travel in the same books: a parcel then says what
// its entries are set to, and 0 says nothing (Merge); or, where nothing waited
// for it, what is added to them in a few bits each (step_codes.h).
//
// A new tracker epoch (runtime/parcels.h) empties the ledger at every node.
// Memory: n floats an edge for what is out and n for what is pending, and two
// parcels that wait for their round at the taker (LedgerCost); edges with equal
// shares have one parcel between them as long as nothing is late.
//
// Checked by probe: both ends sum <r, mass> over an edge in double, r being +-1 by
// coordinate; a delivery brings the taker's sum, so each edge is balanced by its
// two ends without a server.
#ifndef DFL_CORE_MASS_MASS_LEDGER_H_
#define DFL_CORE_MASS_MASS_LEDGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/vector/message_format.h"

namespace dfl::core {

// <r, v>, r_l = +1 or -1 by a hash of l: the same r on every node.
double Probe(absl::Span<const float> v);

// What a ledger of parcels of `vectors` vectors [n] keeps for each edge.
EdgeCost LedgerCost(int64_t vectors = 1);

// Writes parcels in a lossy format. codec/mass_codec.h
class MassCode {
 public:
  virtual ~MassCode() = default;

  struct Written {
    MessageFormat format;
    uint64_t seed = 0;
    FlatVector carried;  // what the taker decodes
  };
  // The parcel `sequence` of `mass` to `to`. The same arguments give the same
  // bytes. Nullopt: as it is, in fp32.
  virtual std::optional<Written> Write(const NodeId& to, uint64_t sequence,
                                       absl::Span<const float> mass) const = 0;
};

class MassLedger {
 public:
  using Share = std::shared_ptr<const FlatVector>;

  // How parcels that wait become one.
  enum class Merge {
    kSum,      // what is added to a vector
    kReplace,  // what entries are set to; 0: as it was
  };
  // `code`, of kSum: how parcels are written, and outlives the ledger; null: in
  // fp32.
  explicit MassLedger(Merge merge = Merge::kSum, const MassCode* code = nullptr)
      : merge_(merge), code_(code) {}

  // ---- giving

  // Notes `mass` [n] and `scalar`, which the caller has deducted from its own,
  // as given to `to` in `round`.
  // `steps`, of kReplace: travel in the place of `mass`, unless something waits,
  // and lead to the same entries.
  using Steps = std::shared_ptr<const StepCodes>;
  void Give(const NodeId& to, int64_t round, const Share& mass,
            double scalar = 0, const Steps& steps = nullptr);
  // Sends what waits, for each edge with nothing out.
  void Send(Actions& actions);
  // The parcel `sequence` was taken. `taken`: the taker's probe sum of the edge.
  void OnDelivered(const Delivered& delivered);
  // Something given to `to` is not delivered yet, but for what parcels could not
  // carry.
  bool Owes(const NodeId& to) const;

  // ---- taking

  // Takes a parcel in; false: it was taken before. Nothing is added yet.
  bool Take(MassArrived arrived);
  // A parcel of `round` or a later one has come from `from`.
  bool HasOf(const NodeId& from, int64_t round) const;
  // Adds all that has come of rounds up to `round` to `vector`, by giver and in
  // order; returns the sum of its scalars. kSum only.
  double AddTo(int64_t round, absl::Span<float> vector);
  // Gives it away instead, by giver and in order.
  struct Taken {
    NodeId from;
    FlatVector mass;
    double scalar = 0;
    bool increments = false;  // kReplace: else what entries are set to
  };
  std::vector<Taken> TakeOut(int64_t round);
  // kReplace: parcels that wait here are not merged. The oldest, where `from`
  // has more of them waiting than are kept.
  std::optional<Taken> TakeSurplus(const NodeId& from);
  // Probe sum of all that was taken from `from`.
  double taken(const NodeId& from) const;

  // A new epoch: nothing was ever given or taken.
  void Reset();

  // All of it; parcels are of `length`, a multiple of n.
  void VisitState(StateFields& fields, size_t n, size_t length);
  // Sends what is out once more: of a lossy one what it carried, in fp32.
  void SendAgain(Actions& actions) const;

  // ---- for the monitor and tests

  // The largest difference between the two ends of an edge, as probes, over the
  // edges on which nothing is out: 0 but for rounding, or mass was lost.
  double Imbalance() const;
  // Parcels that were repeated to us.
  int64_t repeats() const { return repeats_; }
  // Adds to `vector` what was given and is not known to be delivered, and what
  // was taken and not added yet; returns the scalars' sum. kSum only.
  double AddUnsettled(absl::Span<float> vector) const;
  // What waits for its round, by giver and in order.
  std::vector<const Taken*> held() const;
  // What was given and is not known to be delivered, borrowed until the next
  // change.
  struct OutParcel {
    NodeId to;
    uint64_t sequence = 0;
    const FlatVector* mass = nullptr;
    double scalar = 0;
    bool increments = false;
  };
  std::vector<OutParcel> out() const;
  // The number of the newest parcel that was taken from `from`; 0: none.
  uint64_t last_taken(const NodeId& from) const;

 private:
  struct Parcel {
    uint64_t sequence = 0;
    int64_t round = 0;
    Share mass;
    double scalar = 0;
    Steps steps;       // not null: `mass` is theirs, once it is out
    bool due = false;  // pending: something was given since the last parcel
  };
  struct Giving {
    uint64_t last_sequence = 0;
    Parcel out;            // mass null: nothing is out
    Parcel pending;        // mass null: nothing waits
    double given = 0;      // probe, of all delivered
    double confirmed = 0;  // the taker's, of the same
  };
  struct Held {
    int64_t round = 0;
    Taken taken;
  };
  struct Taking {
    uint64_t last_sequence = 0;
    int64_t newest_round = -1;
    double taken = 0;
    std::vector<Held> held;  // in order
  };

  void Add(Share& sum, const Share& mass) const;
  // Writes what is out to `to`; the rest of it is pending.
  void Write(const NodeId& to, Giving& giving, core::Give& give) const;
  // What sends `parcel`; `give` says how it is written.
  static core::Give GiveOf(const NodeId& to, const Parcel& parcel,
                           core::Give give = {});
  static void VisitParcel(StateFields& fields, const std::string& name,
                          size_t n, size_t length, Parcel& parcel);

  const Merge merge_;
  const MassCode* const code_;
  std::map<NodeId, Giving> giving_;
  std::map<NodeId, Taking> taking_;
  int64_t repeats_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_CORE_MASS_MASS_LEDGER_H_
