// The mass ledger: what a node gives away must arrive exactly once.
//
// Gradient tracking and push-sum hand over parts of a vector. The giver deducts
// a part and the taker adds it, late or not, exactly once. Otherwise the sum
// over all nodes is wrong for ever. The giving end of each directed edge has
//
//   out      at most one parcel, repeated unchanged until it is delivered
//   pending  the sum of what was given meanwhile; it is the next parcel
//
// The taking end has the number of the last parcel it took, and ignores a
// parcel that it took before. A parcel carries the newest round it contains. If
// that is later than the taker's round, it is kept until the taker gets there.
//
//   sum over nodes of (vector + given, not delivered + taken, not added) = 0
//
// A parcel may be written in a lossy format (MassCode). It then carries
// C(pending) as its taker decodes it, and pending keeps the remainder, which
// goes with the next parcel (error feedback). A remainder alone is owed to
// nobody.
//
// The ledger also carries replicas (replica_rounds.h). A parcel then says what
// entries are set to, where 0 means no change (Merge). If nothing was pending,
// it may instead say what is added to them, in a few bits each (step_codes.h).
//
// A new tracker epoch (runtime/parcels.h) empties the ledger at every node.
// Memory per edge: n floats in flight and n pending, and at the taker two
// parcels that wait for their round (LedgerCost). Edges with equal shares share
// one parcel as long as nothing is late.
//
// Check by probe: both ends sum <r, mass> over an edge in double, where r is
// +-1 for each coordinate. A delivery brings the taker's sum, so the two ends
// of each edge can compare their books without a server.
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
#include "daemon/core/algorithm/edge_books.h"
#include "daemon/core/vector/message_format.h"

namespace dfl::core {

// <r, v>, r_l = +1 or -1 by a hash of l: the same r on every node.
double Probe(absl::Span<const float> v);

// What a ledger keeps for each edge, if a parcel has `vectors` vectors [n].
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
  // Writes parcel `sequence` of `mass` to `to`. The same arguments give the
  // same bytes. Nullopt: the parcel is sent exactly, in fp32.
  virtual std::optional<Written> Write(const NodeId& to, uint64_t sequence,
                                       absl::Span<const float> mass) const = 0;
};

// A parcel at its giver.
struct MassParcel {
  uint64_t sequence = 0;
  int64_t round = 0;
  std::shared_ptr<const FlatVector> mass;
  double scalar = 0;
  std::shared_ptr<const StepCodes> steps;  // not null: `mass` is theirs
  bool due = false;  // something was given since the last one
};

class MassLedger {
 public:
  using Share = std::shared_ptr<const FlatVector>;

  // How pending parcels are merged.
  enum class Merge {
    kSum,      // what is added to a vector
    kReplace,  // what entries are set to; 0: as it was
  };
  // `code` (kSum only) says how parcels are written and outlives the ledger;
  // null: fp32.
  explicit MassLedger(Merge merge = Merge::kSum, const MassCode* code = nullptr)
      : merge_(merge), code_(code) {}

  // ---- giving

  // Gives `mass` [n] and `scalar`, which the caller has deducted from its own,
  // to `to` in `round`. `steps` (kReplace only) are sent in place of `mass`
  // unless something is pending; they lead to the same entries.
  using Steps = std::shared_ptr<const StepCodes>;
  void Give(const NodeId& to, int64_t round, const Share& mass,
            double scalar = 0, const Steps& steps = nullptr);
  // Sends what is pending on each edge with nothing out.
  void Send(Actions& actions);
  // The parcel `sequence` was taken. `taken`: the taker's probe sum of the
  // edge.
  void OnDelivered(const Delivered& delivered);
  // Whether something given to `to` is not delivered yet, apart from the
  // remainders of lossy parcels.
  bool Owes(const NodeId& to) const;

  // ---- taking

  // Takes a parcel; false if it was taken before. Adds nothing yet.
  bool Take(MassArrived arrived);
  // Whether a parcel of `round` or a later one has come from `from`.
  bool HasOf(const NodeId& from, int64_t round) const;
  // Adds all taken parcels of rounds up to `round` to `vector`, by giver and in
  // order. Returns the sum of their scalars. kSum only.
  double AddTo(int64_t round, absl::Span<float> vector);
  // Returns these parcels instead, by giver and in order.
  struct Taken {
    NodeId from;
    FlatVector mass;
    double scalar = 0;
    bool increments = false;  // kReplace: else what entries are set to
  };
  std::vector<Taken> TakeOut(int64_t round);
  // kReplace: taken parcels are not merged. Returns the oldest one of `from`,
  // if more are waiting than are kept.
  std::optional<Taken> TakeSurplus(const NodeId& from);
  // The probe sum of all that was taken from `from`.
  double taken(const NodeId& from) const;

  // Begins a new epoch, in which nothing was given or taken.
  void Reset();

  // The whole state. Parcels have `length` entries, a multiple of n.
  void VisitState(StateFields& fields, size_t n, size_t length);
  // Sends what is out once more. A lossy parcel is sent as it decodes, in fp32.
  void SendAgain(Actions& actions) const;

  // ---- for the monitor and tests

  // The largest difference of the probes of an edge's two ends, over the edges
  // on which nothing is out. If it is not 0, except for rounding, mass was
  // lost.
  double Imbalance() const;
  // The number of parcels that arrived again.
  int64_t repeats() const { return repeats_; }
  // Adds to `vector` what was given and is not known to be delivered, and what
  // was taken and not added yet. Returns the sum of the scalars. kSum only.
  double AddUnsettled(absl::Span<float> vector) const;
  // Taken parcels that wait for their round, by giver and in order.
  std::vector<const Taken*> held() const;
  // A parcel that was given and is not known to be delivered. Borrowed until
  // the next change.
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
  // What this end knows of the edge to `peer`.
  EdgeBooks BooksWith(const NodeId& peer) const;

 private:
  struct Giving {
    uint64_t last_sequence = 0;
    MassParcel out;        // mass null: nothing is out
    MassParcel pending;    // mass null: nothing waits
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
  // Writes the parcel that is out to `to`. Its remainder becomes pending.
  void Write(const NodeId& to, Giving& giving, core::Give& give) const;

  const Merge merge_;
  const MassCode* const code_;
  std::map<NodeId, Giving> giving_;
  std::map<NodeId, Taking> taking_;
  int64_t repeats_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_CORE_MASS_MASS_LEDGER_H_
