#include "daemon/core/algorithm/decisions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/distributions.h"

namespace dfl::core {

DecisionsState SeededDecisions::ExportState() const {
  DecisionsState state;
  state.seed = seed_;
  state.stream = stream_;
  for (const auto& [purpose, rng] : generators_) {
    state.generators[purpose] = rng.state();
  }
  return state;
}

absl::Status SeededDecisions::ImportState(const DecisionsState& state) {
  std::map<std::string, Rng, std::less<>> generators;
  for (const auto& [purpose, words] : state.generators) {
    if (words == std::array<uint64_t, 4>{}) {
      return absl::InvalidArgumentError(absl::StrCat(
          "state of decisions: the generator \"", purpose, "\" is all zeros"));
    }
    generators.emplace(purpose, Rng(0)).first->second.set_state(words);
  }
  seed_ = state.seed;
  stream_ = state.stream;
  generators_ = std::move(generators);
  return absl::OkStatus();
}

Rng& SeededDecisions::For(absl::string_view purpose) {
  const auto found = generators_.find(purpose);
  if (found != generators_.end()) return found->second;
  return generators_
      .emplace(std::string(purpose), Rng(DeriveSeed(seed_, purpose, stream_)))
      .first->second;
}

std::vector<NodeId> SeededDecisions::ChooseNeighbours(
    absl::Span<const NodeId> candidates, int64_t count) {
  DFL_CHECK(count >= 0 && count <= static_cast<int64_t>(candidates.size()));
  std::vector<NodeId> chosen(candidates.begin(), candidates.end());
  Rng& rng = For("neighbours");
  // The first `count` places of a Fisher-Yates shuffle.
  for (int64_t i = 0; i < count; ++i) {
    using std::swap;
    swap(chosen[i], chosen[i + rng.Below(chosen.size() - i)]);
  }
  chosen.resize(count);
  return chosen;
}

uint64_t SeededDecisions::NameCoordinates(const NodeId& /*to*/) {
  return For("coordinates").Next();
}

int64_t SeededDecisions::DrawFrom(absl::string_view purpose, IntRange range) {
  Rng rng(DeriveSeed(DeriveSeed(seed_, purpose), "range",
                     static_cast<uint64_t>(range.lo),
                     static_cast<uint64_t>(range.hi)));
  return range.lo + static_cast<int64_t>(rng.Below(range.hi - range.lo + 1));
}

int64_t SeededDecisions::DrawAnew(absl::string_view purpose, IntRange range) {
  Rng& rng = For(absl::StrCat("anew ", purpose));
  return range.lo + static_cast<int64_t>(rng.Below(range.hi - range.lo + 1));
}

bool SeededDecisions::Happens(absl::string_view purpose, const NodeId& /*peer*/,
                              double probability) {
  return For(absl::StrCat("happens ", purpose)).Uniform() < probability;
}

std::vector<int64_t> SeededDecisions::ChooseTogether(uint64_t run_seed,
                                                     absl::string_view purpose,
                                                     int64_t round,
                                                     int64_t candidates,
                                                     int64_t count) {
  DFL_CHECK(count >= 0 && count <= candidates);
  Rng rng(DeriveSeed(DeriveSeed(run_seed, purpose), "together",
                     static_cast<uint64_t>(round)));
  // Floyd's sampling: O(count), whatever the number of candidates.
  std::vector<int64_t> chosen;
  for (int64_t last = candidates - count; last < candidates; ++last) {
    const auto place = static_cast<int64_t>(rng.Below(last + 1));
    const bool taken =
        std::find(chosen.begin(), chosen.end(), place) != chosen.end();
    chosen.push_back(taken ? last : place);
  }
  return chosen;
}

double SeededDecisions::DrawWait(absl::string_view purpose, double mean) {
  return mean * Exponential(For(absl::StrCat("wait ", purpose)));
}

std::vector<int64_t> SeededDecisions::ChooseCoordinates(
    absl::string_view purpose, int64_t n, int64_t count) {
  DFL_CHECK(count >= 0 && count <= n);
  std::vector<int64_t> chosen;
  chosen.reserve(count);
  Rng& rng = For(absl::StrCat("coordinates ", purpose));
  // Selection sampling (Knuth's algorithm S).
  for (int64_t l = 0; static_cast<int64_t>(chosen.size()) < count; ++l) {
    const int64_t wanted = count - static_cast<int64_t>(chosen.size());
    if (static_cast<int64_t>(rng.Below(n - l)) < wanted) {
      chosen.push_back(l);
    }
  }
  return chosen;
}

}  // namespace dfl::core
