#include "daemon/core/mass/mass_ledger.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"
#include "daemon/core/vector/step_codes.h"

namespace dfl::core {
namespace {

// Parcels of one giver that wait for their rounds; more are one, or are not
// kept waiting, for bounded memory whatever a neighbour sends.
constexpr size_t kMostHeld = 2;

double ScalarOf(const RemoteModel& model) {
  return model.scalars.empty() ? 0 : model.scalars.front();
}

// The action that sends `parcel`; `give` says how it is written.
core::Give GiveOf(const NodeId& to, const MassParcel& parcel,
                  core::Give give = {}) {
  give.to = to;
  give.sequence = parcel.sequence;
  give.round = parcel.round;
  give.mass = parcel.mass;
  give.nonzeros = static_cast<int64_t>(
      give.mass->size() -
      std::count(give.mass->begin(), give.mass->end(), 0.0F));
  if (parcel.scalar != 0) give.scalars = {parcel.scalar};
  give.steps = parcel.steps;
  return give;
}

void VisitParcel(StateFields& fields, const std::string& name, size_t n,
                 size_t length, MassParcel& parcel) {
  fields.Name(name + "/sequence", parcel.sequence);
  fields.Count(name + "/round", parcel.round);
  fields.Vector(name + "/mass", parcel.mass, length);
  fields.Number(name + "/scalar", parcel.scalar);
  fields.Flag(name + "/due", parcel.due);
  // Steps: their bits, and the increments with the steps behind them.
  const auto values = static_cast<int64_t>(length);
  const auto vectors = static_cast<int>(length / n);
  const int64_t blocks = vectors * StepCount(static_cast<int64_t>(n));
  int64_t bits = 1;
  MassLedger::Share all;
  if (const MassLedger::Steps& of = parcel.steps) {
    bits = of->bits;
    FlatVector both(of->values);
    both.insert(both.end(), of->steps.begin(), of->steps.end());
    all = std::make_shared<const FlatVector>(std::move(both));
  }
  fields.Count(name + "/bits", bits, 1, kMostStepBits);
  fields.Vector(name + "/steps", all, static_cast<size_t>(values + blocks));
  if (parcel.steps || !all) return;
  const auto middle = all->begin() + values;
  auto read = std::make_shared<StepCodes>(static_cast<int>(bits), vectors,
                                          static_cast<int64_t>(n));
  read->values.assign(all->begin(), middle);
  read->steps.assign(middle, all->end());
  parcel.steps = std::move(read);
}

}  // namespace

double Probe(absl::Span<const float> v) {
  double sum = 0;
  for (size_t l = 0; l < v.size(); ++l) {
    const uint64_t hash = (l + 1) * 0x9E3779B97F4A7C15U;
    sum += (hash >> 63) != 0 ? -static_cast<double>(v[l])
                             : static_cast<double>(v[l]);
  }
  return sum;
}

EdgeCost LedgerCost(int64_t vectors) {
  EdgeCost cost;
  cost.given = 2 * vectors;  // out and pending
  cost.taken = static_cast<int64_t>(kMostHeld) * vectors;
  cost.parcel = vectors;
  return cost;
}

// ----------------------------------------------------------------- giving ----

void MassLedger::Add(Share& sum, const Share& mass) const {
  if (!sum) {
    sum = mass;
    return;
  }
  auto merged = std::make_shared<FlatVector>(*sum);
  if (merge_ == Merge::kSum) {
    AddScaled(1.0F, *mass, absl::MakeSpan(*merged));
  } else {
    SetWhereNotZero(*mass, absl::MakeSpan(*merged));
  }
  sum = std::move(merged);
}

void MassLedger::Give(const NodeId& to, int64_t round, const Share& mass,
                      double scalar, const Steps& steps) {
  MassParcel& pending = giving_[to].pending;
  pending.steps = pending.mass ? nullptr : steps;
  Add(pending.mass, mass);
  pending.scalar += scalar;
  pending.round = round;
  pending.due = true;
}

void MassLedger::Write(const NodeId& to, Giving& giving,
                       core::Give& give) const {
  if (code_ == nullptr || merge_ != Merge::kSum) return;
  MassParcel& out = giving.out;
  std::optional<MassCode::Written> written =
      code_->Write(to, out.sequence, *out.mass);
  if (!written) return;
  auto rest = std::make_shared<FlatVector>(*out.mass);
  AddScaled(-1.0F, written->carried, absl::MakeSpan(*rest));
  give.format = written->format;
  give.seed = written->seed;
  give.source = out.mass;
  out.mass = std::make_shared<const FlatVector>(std::move(written->carried));
  giving.pending.mass = std::move(rest);
}

void MassLedger::Send(Actions& actions) {
  for (auto& [to, giving] : giving_) {
    if (giving.out.mass || !giving.pending.due) continue;
    giving.out = std::exchange(giving.pending, MassParcel());
    giving.out.sequence = ++giving.last_sequence;
    if (const Steps& steps = giving.out.steps) {
      giving.out.mass = Share(steps, &steps->values);
    }
    core::Give give;
    Write(to, giving, give);
    actions.Do(GiveOf(to, giving.out, std::move(give)));
  }
}

void MassLedger::SendAgain(Actions& actions) const {
  for (const auto& [to, giving] : giving_) {
    if (giving.out.mass) actions.Do(GiveOf(to, giving.out));
  }
}

void MassLedger::OnDelivered(const Delivered& delivered) {
  const auto it = giving_.find(delivered.to);
  if (it == giving_.end()) return;
  Giving& giving = it->second;
  if (!giving.out.mass || giving.out.sequence != delivered.sequence) return;
  giving.given += Probe(*giving.out.mass);
  giving.confirmed = delivered.taken;
  giving.out = MassParcel();
}

bool MassLedger::Owes(const NodeId& to) const {
  const auto it = giving_.find(to);
  return it != giving_.end() &&
         (it->second.out.mass != nullptr || it->second.pending.due);
}

// ----------------------------------------------------------------- taking ----

bool MassLedger::Take(MassArrived arrived) {
  Taking& taking = taking_[arrived.from];
  if (arrived.sequence <= taking.last_sequence) {
    ++repeats_;
    return false;
  }
  taking.last_sequence = arrived.sequence;
  Held held;
  held.round = arrived.model.step;
  held.taken.from = arrived.from;
  RemoteVector& mass = *arrived.model.parameters;
  held.taken.mass.assign(static_cast<size_t>(mass.size()), 0.0F);
  AddValues(mass, 1, absl::MakeSpan(held.taken.mass));
  held.taken.scalar = ScalarOf(arrived.model);
  held.taken.increments = arrived.increments;
  taking.newest_round = std::max(taking.newest_round, held.round);
  taking.taken += Probe(held.taken.mass);
  if (merge_ == Merge::kSum && taking.held.size() == kMostHeld) {
    Held& last = taking.held.back();
    AddScaled(1.0F, held.taken.mass, absl::MakeSpan(last.taken.mass));
    last.taken.scalar += held.taken.scalar;
    last.round = held.round;
  } else {
    taking.held.push_back(std::move(held));
  }
  return true;
}

bool MassLedger::HasOf(const NodeId& from, int64_t round) const {
  const auto it = taking_.find(from);
  return it != taking_.end() && it->second.newest_round >= round;
}

std::vector<MassLedger::Taken> MassLedger::TakeOut(int64_t round) {
  std::vector<Taken> out;
  for (auto& [from, taking] : taking_) {
    auto held = taking.held.begin();
    for (; held != taking.held.end() && held->round <= round; ++held) {
      out.push_back(std::move(held->taken));
    }
    taking.held.erase(taking.held.begin(), held);
  }
  return out;
}

double MassLedger::AddTo(int64_t round, absl::Span<float> vector) {
  double scalars = 0;
  for (const Taken& taken : TakeOut(round)) {
    AddScaled(1.0F, taken.mass, vector);
    scalars += taken.scalar;
  }
  return scalars;
}

std::optional<MassLedger::Taken> MassLedger::TakeSurplus(const NodeId& from) {
  std::vector<Held>& held = taking_[from].held;
  if (held.size() <= kMostHeld) return std::nullopt;
  Taken oldest = std::move(held.front().taken);
  held.erase(held.begin());
  return oldest;
}

double MassLedger::taken(const NodeId& from) const {
  const auto it = taking_.find(from);
  return it == taking_.end() ? 0 : it->second.taken;
}

void MassLedger::Reset() {
  giving_.clear();
  taking_.clear();
}

void MassLedger::VisitState(StateFields& fields, size_t n, size_t length) {
  const auto parcel = [&](const char* name, MassParcel& of) {
    VisitParcel(fields, name, n, length, of);
  };
  fields.ByNode("giving", giving_, [&](Giving& giving) {
    fields.Name("sequence", giving.last_sequence);
    parcel("out", giving.out);
    if (const Steps& steps = giving.out.steps) {
      giving.out.mass = Share(steps, &steps->values);  // as Send made it
    }
    parcel("pending", giving.pending);
    fields.Number("given", giving.given);
    fields.Number("confirmed", giving.confirmed);
  });
  fields.ByNode("taking", taking_, [&](Taking& taking) {
    fields.Name("sequence", taking.last_sequence);
    fields.Count("round", taking.newest_round, -1);
    fields.Number("taken", taking.taken);
    fields.List("held", taking.held, kMostHeld, [&](Held& held) {
      fields.Count("round", held.round);
      fields.Node("from", held.taken.from);
      fields.Vector("mass", held.taken.mass, length);
      fields.Number("scalar", held.taken.scalar);
      fields.Flag("increments", held.taken.increments);
    });
  });
  fields.Count("repeats", repeats_);
}

double MassLedger::Imbalance() const {
  double largest = 0;
  for (const auto& [to, giving] : giving_) {
    if (giving.out.mass) continue;
    largest = std::max(largest, std::fabs(giving.given - giving.confirmed));
  }
  return largest;
}

double MassLedger::AddUnsettled(absl::Span<float> vector) const {
  double scalars = 0;
  for (const auto& [to, giving] : giving_) {
    for (const MassParcel* parcel : {&giving.out, &giving.pending}) {
      if (!parcel->mass) continue;
      AddScaled(1.0F, *parcel->mass, vector);
      scalars += parcel->scalar;
    }
  }
  for (const auto& [from, taking] : taking_) {
    for (const Held& held : taking.held) {
      AddScaled(1.0F, held.taken.mass, vector);
      scalars += held.taken.scalar;
    }
  }
  return scalars;
}

std::vector<const MassLedger::Taken*> MassLedger::held() const {
  std::vector<const Taken*> all;
  for (const auto& [from, taking] : taking_) {
    for (const Held& held : taking.held) all.push_back(&held.taken);
  }
  return all;
}

std::vector<MassLedger::OutParcel> MassLedger::out() const {
  std::vector<OutParcel> all;
  for (const auto& [to, giving] : giving_) {
    if (!giving.out.mass) continue;
    all.push_back({to, giving.out.sequence, giving.out.mass.get(),
                   giving.out.scalar, giving.out.steps != nullptr});
  }
  return all;
}

uint64_t MassLedger::last_taken(const NodeId& from) const {
  const auto it = taking_.find(from);
  return it == taking_.end() ? 0 : it->second.last_sequence;
}

EdgeBooks MassLedger::BooksWith(const NodeId& peer) const {
  EdgeBooks books;
  if (const auto it = giving_.find(peer); it != giving_.end()) {
    const Giving& giving = it->second;
    books.delivered = giving.last_sequence;
    books.given = giving.given;
    if (giving.out.mass) {
      books.out = giving.out.sequence;
      books.delivered = books.out - 1;
      books.given_out = Probe(*giving.out.mass);
    }
  }
  if (const auto it = taking_.find(peer); it != taking_.end()) {
    books.taken_sequence = it->second.last_sequence;
    books.taken = it->second.taken;
  }
  return books;
}

}  // namespace dfl::core
