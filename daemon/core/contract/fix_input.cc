#include "daemon/core/contract/fix_input.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/contract/shape.h"
#include "daemon/core/contract/sides.h"

namespace dfl::core {
namespace {

using Offers = absl::Span<const NamedOffer>;
using Per = InputScaling::Per;
using Over = InputScaling::Over;

std::optional<std::string> PlanText(const DataSection& plan) {
  std::vector<std::string> parts;
  if (plan.divide.has_value()) {
    parts.push_back(absl::StrCat("divide: ", NumberText(*plan.divide)));
  }
  if (plan.per.has_value()) {
    parts.push_back(absl::StrCat("standardise: ", PerName(*plan.per)));
  }
  if (plan.over.has_value()) {
    parts.push_back(absl::StrCat("over: ", OverName(*plan.over)));
  }
  if (parts.empty()) return std::nullopt;
  return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
}

std::string InputText(const InputScaling& input) {
  DataContract contract;
  contract.input = input;
  return FieldText(contract, ContractField::kInput);
}

// Without what has no meaning in its kind.
InputScaling Tidy(InputScaling input) {
  if (input.per == Per::kNone) input.over = Over::kNode;
  if (input.over == Over::kNode) {
    input.mean.clear();
    input.std.clear();
  }
  return input;
}

// Where the plan says what is standardised and not over whose rows, that is the
// node's own to say.
Over OverOf(const DataSection& plan, const InputScaling& input) {
  return plan.over.value_or(input.per == *plan.per ? input.over : Over::kNode);
}

// What the plan states, with the rest of `input`.
InputScaling Stated(const DataSection& plan, InputScaling input) {
  if (plan.divide.has_value()) input.divide = *plan.divide;
  if (plan.per.has_value()) {
    input.over = OverOf(plan, input);
    input.per = *plan.per;
    if (!plan.mean.empty()) {
      input.mean = plan.mean;
      input.std = plan.std;
    }
  }
  return Tidy(std::move(input));
}

// Where names stand in a list, which must outlive it.
using Places = std::map<absl::string_view, size_t>;

Places PlacesOf(const std::vector<std::string>& names) {
  Places places;
  for (size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
  return places;
}

// Numbers of features that an offer gives in the order of its own columns, in
// the order of the plan.
std::vector<float> InOrderOf(const DataSection& plan, const DataOffer& offer,
                             const std::vector<float>& numbers) {
  std::vector<float> ordered = numbers;
  if (!plan.features.has_value() || numbers.size() != plan.features->size() ||
      numbers.size() != offer.features.size()) {
    return ordered;
  }
  const Places places = PlacesOf(offer.features);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto place = places.find((*plan.features)[i]);
    if (place == places.end()) return numbers;
    ordered[i] = numbers[place->second];
  }
  return ordered;
}

// The scaling that `offer` has under the plan.
InputScaling Effective(const DataSection& plan, const DataOffer& offer) {
  InputScaling own = offer.input;
  if (own.per == Per::kFeature && own.over == Over::kGiven) {
    own.mean = InOrderOf(plan, offer, own.mean);
    own.std = InOrderOf(plan, offer, own.std);
  }
  DataSection wins = plan;
  if (offer.divide_stated) wins.divide.reset();
  // Its settings may say how, and the plan the numbers of the network.
  const bool same_network =
      plan.per == offer.input.per &&
      plan.over.value_or(offer.input.over) == Over::kNetwork &&
      offer.input.over == Over::kNetwork;
  if (offer.standardise_stated && !same_network) wins.per.reset();
  return Stated(wins, std::move(own));
}

int64_t NumbersOf(Per per, const std::vector<int64_t>& shape) {
  switch (per) {
    case Per::kNone:
      return 0;
    case Per::kAll:
      return 1;
    case Per::kChannel:
      return shape.empty() ? 1 : shape[0];
    case Per::kFeature:
      return Product(shape);
  }
  return 0;
}

// Of means and of stds that are worked out over the network.
constexpr int64_t kMostNumbers = int64_t{1} << 24;

// Sums of one node, in the order that the plan fixes. Features that the node's
// files end before are 0 there (LIBSVM).
struct Sums {
  double rows = 0;  // or, per all, values
  std::vector<double> sums;
  std::vector<double> squares;
};

absl::StatusOr<Sums> SumsOf(const NamedOffer& named, Per per, size_t numbers,
                            const DataSection& section) {
  const DataOffer& offer = named.offer;
  const Moments& moments = offer.moments;
  const size_t found = moments.sums.size();
  if (moments.count <= 0 || found != moments.squares.size() || found == 0 ||
      found > numbers || (found < numbers && !offer.shape_is_at_least)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input: mean and std are over the network, and ", named.who, " tells ",
        found, " sums of its rows instead of ", numbers,
        "; to mend it, set data.standardise: {per: ", PerName(per),
        ", over: network} in its settings too"));
  }
  Sums own{static_cast<double>(moments.count), std::vector<double>(numbers),
           std::vector<double>(numbers)};
  Places places;
  if (per == Per::kFeature && section.features.has_value()) {
    places = PlacesOf(*section.features);
  }
  for (size_t i = 0; i < found; ++i) {
    size_t to = i;
    if (i < offer.features.size()) {
      const auto place = places.find(offer.features[i]);
      if (place != places.end()) to = place->second;
    }
    own.sums[to] = moments.sums[i];
    own.squares[to] = moments.squares[i];
  }
  const int64_t width = Product(offer.shape);
  const int64_t more = Product(*section.shape) - width;
  if (per == Per::kAll && offer.shape_is_at_least && width > 0 && more > 0) {
    const double zeros =
        own.rows / static_cast<double>(width) * static_cast<double>(more);
    const double mean = own.sums[0] / own.rows;
    own.squares[0] += own.rows * zeros / (own.rows + zeros) * mean * mean;
    own.rows += zeros;
  }
  return own;
}

// Mean and std over the rows of all. Each node's squares are about its own
// mean, so nothing is lost where values are large and vary little.
absl::Status Pool(Offers offers, const DataSection& section,
                  InputScaling& input) {
  const int64_t wanted = NumbersOf(input.per, *section.shape);
  if (wanted > kMostNumbers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input: mean and std of ", wanted, " features are too many; allowed: ",
        kMostNumbers, ", or data.standardise: {per: all}"));
  }
  const auto numbers = static_cast<size_t>(wanted);
  std::vector<Sums> all;
  double rows = 0;
  for (const NamedOffer& named : offers) {
    DFL_ASSIGN_OR_RETURN(Sums own, SumsOf(named, input.per, numbers, section));
    rows += own.rows;
    all.push_back(std::move(own));
  }
  input.mean.resize(numbers);
  input.std.resize(numbers);
  for (size_t i = 0; i < numbers; ++i) {
    double sum = 0;
    for (const Sums& own : all) sum += own.sums[i];
    const double mean = sum / rows;
    double squares = 0;
    for (const Sums& own : all) {
      const double away = own.sums[i] / own.rows - mean;
      squares += own.squares[i] + own.rows * away * away;
    }
    const double std = std::sqrt(squares / rows);
    if (!FitsFloat(mean) || !FitsFloat(std)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input: over the network, number ", i + 1, " of ", numbers,
          " has mean ", mean, " and std ", std,
          "; allowed: what float32 holds, up to 3.4e38; to mend it, set ",
          FieldCure(ContractField::kInput)));
    }
    // What never varies has no scale. Its std is no more than what sums of
    // doubles lose, and float32 values that differ have a larger one.
    const bool varies =
        std > 1e-10 * std::fabs(mean) && static_cast<float>(std) > 0;
    input.mean[i] = static_cast<float>(mean);
    input.std[i] = varies ? static_cast<float>(std) : 1.0F;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FixInput(absl::Span<const NamedOffer> offers, bool may_pool,
                      DataSection& section) {
  const auto effective = [&](const DataOffer& offer) {
    return Effective(section, offer);
  };
  InputScaling input = effective(offers[0].offer);
  const bool agree =
      std::all_of(offers.begin(), offers.end(), [&](const NamedOffer& named) {
        const InputScaling own = effective(named.offer);
        return own == input && own == Stated(section, own);
      });
  if (!agree) {
    return absl::InvalidArgumentError(DisagreementText(
        ContractField::kInput,
        Sides(
            offers, [&](const DataOffer& o) { return InputText(effective(o)); },
            PlanText(section))));
  }
  if (!IsDivisor(input.divide)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input: divide is ", input.divide, "; allowed: ", kDivisors,
        "; to mend it, set ", FieldCure(ContractField::kInput)));
  }
  if (input.over == Over::kNetwork && input.mean.empty()) {
    if (!may_pool) {
      return absl::InvalidArgumentError(
          "input: mean and std are over the network, which one node cannot "
          "work out; apply the plan with `dflctl plan apply FILE` to all nodes "
          "at once, which writes them into the plan's data section");
    }
    DFL_RETURN_IF_ERROR(Pool(offers, section, input));
  }
  const int64_t numbers = NumbersOf(input.per, *section.shape);
  const auto found = static_cast<int64_t>(input.mean.size());
  if (found != 0 && found != numbers) {
    return absl::InvalidArgumentError(
        absl::StrCat("input: ", found, " means and stds for rows of shape ",
                     ShapeText(*section.shape), ", standardised per ",
                     PerName(input.per), "; that takes ", numbers,
                     "; to mend it, set ", FieldCure(ContractField::kInput)));
  }
  section.divide = input.divide;
  section.per = input.per;
  section.over.reset();
  if (input.per != Per::kNone) section.over = input.over;
  section.mean = std::move(input.mean);
  section.std = std::move(input.std);
  return absl::OkStatus();
}

}  // namespace dfl::core
