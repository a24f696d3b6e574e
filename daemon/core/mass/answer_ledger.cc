#include "daemon/core/mass/answer_ledger.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/base/check.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/mass/mass_ledger.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

// Buffers that wait for a boundary; they may be lost, so more are not kept.
constexpr size_t kMostBuffers = 8;

double ProbeOf(const ModAnswer& answer, absl::Span<const float> difference) {
  return answer.beta * Probe(difference);
}

void AddInto(float a, const FlatVector& x, FlatVector& sum) {
  sum.resize(x.size(), 0.0F);
  AddScaled(a, x, absl::MakeSpan(sum));
}

Give GiveOf(const NodeId& to, int64_t round,
            const std::shared_ptr<const ModAnswer>& answer,
            const std::shared_ptr<const FlatVector>& difference,
            const std::vector<float>& buffers) {
  core::Give give;
  give.to = to;
  give.sequence = answer->number;
  give.round = round;
  give.mass = difference;
  give.answer = answer;
  give.buffers = buffers;
  return give;
}

// 32-bit numbers as counts.
void VisitNumber(StateFields& fields, absl::string_view name,
                 uint32_t& number) {
  int64_t count = number;
  fields.Count(name, count, 0, std::numeric_limits<uint32_t>::max());
  number = static_cast<uint32_t>(count);
}

// q as bytes, the lower one first.
void VisitSteps(StateFields& fields, std::vector<int16_t>& q, size_t length) {
  std::vector<uint8_t> bytes;
  bytes.reserve(2 * q.size());
  for (const int16_t step : q) {
    bytes.push_back(static_cast<uint8_t>(step & 255));
    bytes.push_back(static_cast<uint8_t>(step >> 8 & 255));
  }
  bytes.resize(2 * length);
  fields.Bytes("q", bytes, 2 * length);
  q.resize(length);
  for (size_t i = 0; i < length; ++i) {
    q[i] = static_cast<int16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8);
  }
}

void VisitAnswer(StateFields& fields, ModAnswer& answer, size_t n) {
  int64_t modulus = answer.spec.modulus;
  int64_t block = answer.spec.block;
  fields.Count("M", modulus, kLeastModulus, kMostModulus);
  fields.Count("block", block, kModBlock, kModBlock);
  fields.Positive("w", answer.spec.window);
  answer.spec.window = std::min(answer.spec.window, kMostWindow);
  answer.spec.modulus = static_cast<int>(modulus);
  answer.n = static_cast<int64_t>(n);
  fields.Name("seed", answer.seed);
  fields.Number("gamma", answer.gamma);
  fields.Number("beta", answer.beta);
  const auto blocks = static_cast<size_t>(ModBlocks({}, answer.n));
  fields.Bytes("e", answer.scales, blocks);
  fields.Bytes("next_e", answer.next_scales, blocks);
  fields.Bytes("refused", answer.refused, blocks);
  VisitSteps(fields, answer.q, blocks * kModBlock);
}

}  // namespace

EdgeCost AnswerCost() {
  EdgeCost cost;
  cost.given = 2;   // d^, and its codes
  cost.parcel = 1;  // less than that
  return cost;
}

// ----------------------------------------------------------------- giving ----

bool AnswerLedger::Owes(const NodeId& to) const {
  const auto it = edges_.find(to);
  return it != edges_.end() && it->second.out.answer != nullptr;
}

bool AnswerLedger::MayAnswer(const NodeId& to, uint32_t number) const {
  const auto it = edges_.find(to);
  if (it == edges_.end()) return number > 0;
  return it->second.out.answer == nullptr && number > it->second.answered;
}

void AnswerLedger::Give(const NodeId& to, int64_t round,
                        std::shared_ptr<const ModAnswer> answer,
                        std::shared_ptr<const FlatVector> difference,
                        std::vector<float> buffers, Actions& actions) {
  DFL_CHECK(MayAnswer(to, answer->number));
  Edge& edge = edges_[to];
  edge.answered = answer->number;
  const double probe = ProbeOf(*answer, *difference);
  edge.out = {std::move(answer), std::move(difference), std::move(buffers),
              round, probe};
  actions.Do(GiveOf(to, round, edge.out.answer, edge.out.difference,
                    edge.out.buffers));
}

void AnswerLedger::SendAgain(Actions& actions) const {
  for (const auto& [to, edge] : edges_) {
    if (edge.out.answer == nullptr) continue;
    actions.Do(GiveOf(to, edge.out.round, edge.out.answer, edge.out.difference,
                      edge.out.buffers));
  }
}

void AnswerLedger::OnDelivered(const Delivered& delivered) {
  const auto it = edges_.find(delivered.to);
  if (it == edges_.end()) return;
  Edge& edge = it->second;
  if (edge.out.answer == nullptr ||
      edge.out.answer->number != delivered.sequence) {
    return;
  }
  edge.given += edge.out.probe;
  edge.confirmed = delivered.taken;
  edge.delivered = edge.out.answer->number;
  edge.out = Out();
}

// ----------------------------------------------------------------- taking ----

const ModAnswer* AnswerLedger::Take(const MassArrived& arrived, size_t n) {
  const ModAnswer* answer = arrived.model.answer.get();
  if (answer == nullptr || answer->n != static_cast<int64_t>(n) ||
      answer->number != arrived.sequence) {
    return nullptr;
  }
  const auto it = edges_.find(arrived.from);
  if (it == edges_.end() || answer->number > it->second.offered) return nullptr;
  Edge& edge = it->second;
  if (answer->number <= edge.taken) {
    ++repeats_;
    return nullptr;
  }
  edge.taken = answer->number;
  const FlatVector difference = ModDifference(*answer);
  edge.taken_probe += ProbeOf(*answer, difference);
  AddInto(static_cast<float>(answer->gamma), difference, waiting_.moves);
  AddInto(static_cast<float>(answer->beta), difference, waiting_.mass);
  if (!arrived.model.buffers.empty() &&
      waiting_.buffers.size() < kMostBuffers) {
    waiting_.buffers.emplace_back(answer->gamma, arrived.model.buffers);
  }
  return answer;
}

double AnswerLedger::taken(const NodeId& from) const {
  const auto it = edges_.find(from);
  return it == edges_.end() ? 0 : it->second.taken_probe;
}

void AnswerLedger::Reset() {
  edges_.clear();
  waiting_ = {};
}

// --------------------------------------------------------------- the rest ----

EdgeBooks AnswerLedger::BooksWith(const NodeId& peer) const {
  EdgeBooks books;
  const auto it = edges_.find(peer);
  if (it == edges_.end()) return books;
  const Edge& edge = it->second;
  books.delivered = edge.delivered;
  books.given = edge.given;
  if (edge.out.answer != nullptr) {
    books.out = edge.out.answer->number;
    books.given_out = edge.out.probe;
  }
  books.taken_sequence = edge.taken;
  books.taken = edge.taken_probe;
  return books;
}

double AnswerLedger::Imbalance() const {
  double largest = 0;
  for (const auto& [to, edge] : edges_) {
    if (edge.out.answer != nullptr) continue;
    largest = std::max(largest, std::fabs(edge.given - edge.confirmed));
  }
  return largest;
}

void AnswerLedger::AddUnsettled(absl::Span<float> vector) const {
  for (const auto& [to, edge] : edges_) {
    if (edge.out.answer == nullptr) continue;
    AddScaled(static_cast<float>(edge.out.answer->beta), *edge.out.difference,
              vector);
  }
  if (!waiting_.empty()) AddScaled(1.0F, waiting_.mass, vector);
}

std::vector<AnswerLedger::OutAnswer> AnswerLedger::out() const {
  std::vector<OutAnswer> all;
  for (const auto& [to, edge] : edges_) {
    if (edge.out.answer == nullptr) continue;
    all.push_back({to, edge.out.answer.get(), edge.out.difference.get()});
  }
  return all;
}

uint32_t AnswerLedger::last_taken(const NodeId& from) const {
  const auto it = edges_.find(from);
  return it == edges_.end() ? 0 : it->second.taken;
}

void AnswerLedger::VisitState(StateFields& fields, size_t n, size_t b) {
  fields.ByNode("edges", edges_, [&](Edge& edge) {
    VisitNumber(fields, "offered", edge.offered);
    VisitNumber(fields, "answered", edge.answered);
    VisitNumber(fields, "delivered", edge.delivered);
    fields.Number("given", edge.given);
    fields.Number("confirmed", edge.confirmed);
    VisitNumber(fields, "taken", edge.taken);
    fields.Number("taken_probe", edge.taken_probe);
    // A list of one, or none.
    std::vector<Out> out;
    if (edge.out.answer != nullptr) out.push_back(edge.out);
    fields.List("out", out, 1, [&](Out& one) {
      auto answer = one.answer != nullptr
                        ? std::make_shared<ModAnswer>(*one.answer)
                        : std::make_shared<ModAnswer>();
      VisitAnswer(fields, *answer, n);
      answer->number = edge.answered;
      fields.Count("round", one.round);
      VisitBuffers(fields, one.buffers, b);
      if (one.difference != nullptr) return;  // it was written
      one.difference =
          std::make_shared<const FlatVector>(ModDifference(*answer));
      one.probe = ProbeOf(*answer, *one.difference);
      one.answer = std::move(answer);
    });
    edge.out = out.empty() ? Out() : std::move(out.front());
  });
  bool waits = !waiting_.empty();
  FlatVector both = waiting_.moves;
  both.insert(both.end(), waiting_.mass.begin(), waiting_.mass.end());
  fields.Vector("waiting", waits, both, 2 * n);
  if (waits && both.size() == 2 * n) {
    const auto middle = both.begin() + static_cast<int64_t>(n);
    waiting_.moves.assign(both.begin(), middle);
    waiting_.mass.assign(middle, both.end());
  }
  fields.List("waiting/buffers", waiting_.buffers, kMostBuffers,
              [&](std::pair<double, std::vector<float>>& one) {
                fields.Number("gamma", one.first);
                VisitBuffers(fields, one.second, b);
              });
  fields.Count("repeats", repeats_);
}

void VisitOffer(StateFields& fields, ModOffer& offer, size_t n) {
  int64_t modulus = offer.spec.modulus;
  fields.Count("M", modulus, kLeastModulus, kMostModulus);
  offer.spec.modulus = static_cast<int>(modulus);
  fields.Positive("w", offer.spec.window);
  offer.spec.window = std::min(offer.spec.window, kMostWindow);
  offer.n = static_cast<int64_t>(n);
  VisitNumber(fields, "number", offer.number);
  fields.Name("seed", offer.seed);
  const auto blocks = static_cast<size_t>(ModBlocks({}, offer.n));
  fields.Bytes("e", offer.scales, blocks);
  std::vector<uint8_t> checks;
  for (const uint16_t check : offer.checks) {
    checks.push_back(static_cast<uint8_t>(check & 255));
    checks.push_back(static_cast<uint8_t>(check >> 8));
  }
  checks.resize(2 * blocks);
  fields.Bytes("checks", checks, 2 * blocks);
  offer.checks.resize(blocks);
  for (size_t i = 0; i < blocks; ++i) {
    offer.checks[i] =
        static_cast<uint16_t>(checks[2 * i] | checks[2 * i + 1] << 8);
  }
  fields.Bytes("codes", offer.codes, blocks * kModBlock);
}

void VisitBuffers(StateFields& fields, std::vector<float>& buffers, size_t b) {
  FlatVector values(buffers.begin(), buffers.end());
  bool present = !values.empty();
  fields.Vector("buffers", present, values, b);
  if (!present) values.clear();
  buffers.assign(values.begin(), values.end());
}

}  // namespace dfl::core
