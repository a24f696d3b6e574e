#include "daemon/config/node_contract.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/conform.h"

namespace dfl::config {
namespace {

using core::InputScaling;
using Per = InputScaling::Per;
using Over = InputScaling::Over;

Per PerOf(StandardiseSettings::Per per) {
  switch (per) {
    case StandardiseSettings::Per::kNone:
      return Per::kNone;
    case StandardiseSettings::Per::kAll:
      return Per::kAll;
    case StandardiseSettings::Per::kChannel:
      return Per::kChannel;
    case StandardiseSettings::Per::kFeature:
      return Per::kFeature;
  }
  return Per::kNone;
}

// Of `count` given numbers, for rows of this shape.
Per PerOf(size_t count, const std::vector<int64_t>& shape) {
  if (count == 1) return Per::kAll;
  const bool channels =
      shape.size() > 1 && count == static_cast<size_t>(shape[0]);
  return channels ? Per::kChannel : Per::kFeature;
}

InputScaling OwnScaling(const NodeData& data, const DataSettings& settings) {
  const data::Dataset& rows = data.train.dataset();
  const StandardiseSettings& standardise = settings.standardise;
  InputScaling input;
  input.divide = data.standardizer.DivideOf(rows);
  if (!standardise.file.empty() || !standardise.mean.empty()) {
    input.mean = data.standardizer.mean();
    input.std = data.standardizer.std();
    input.per = PerOf(input.mean.size(), rows.shape());
    input.over = Over::kGiven;
    return input;
  }
  input.per = PerOf(standardise.per);
  if (input.per != Per::kNone &&
      standardise.over == StandardiseSettings::Over::kNetwork) {
    input.over = Over::kNetwork;
  }
  return input;
}

// Whether raw values that nobody set a division for speak against `divide`:
// bytes are divided by 255, and other values may be what was divided already.
bool SpeaksAgainst(const NodeData& data, double divide) {
  const data::Dataset& rows = data.train.dataset();
  if (divide == data.standardizer.DivideOf(rows)) return false;
  if (rows.has_bytes()) return true;
  // A division that leaves no value larger than this makes all inputs tiny.
  constexpr double kTiny = 1.0 / 16;
  const absl::Span<const float> values = rows.floats();
  return divide > 1 &&
         std::all_of(values.begin(), values.end(), [&](float value) {
           return !(std::fabs(value) > kTiny * divide);
         });
}

}  // namespace

core::DataOffer MakeOffer(const NodeData& data, const DataSettings& settings,
                          const core::DataSection& section) {
  core::DataOffer offer = data::OfferOf(
      data.train.dataset(), data.test ? &data.test->dataset() : nullptr);
  offer.input = OwnScaling(data, settings);
  offer.divide_stated = settings.common.divide > 0;
  offer.standardise_stated = offer.input.per != Per::kNone;
  if (section.divide.has_value() && !offer.divide_stated) {
    if (SpeaksAgainst(data, *section.divide)) {
      offer.divide_stated = true;
    } else {
      offer.input.divide = *section.divide;
    }
  }
  if (section.per.has_value() && !offer.standardise_stated) {
    offer.input.per = *section.per;
    offer.input.over = section.over.value_or(Over::kNode);
  }
  if (offer.input.over == Over::kNetwork && section.mean.empty()) {
    offer.moments =
        data::MomentsOf(data.train, offer.input.per, offer.input.divide);
  }
  return offer;
}

absl::StatusOr<NodeData> ConformTo(const core::DataContract& contract,
                                   const NodeData& data) {
  NodeData out = data;
  DFL_ASSIGN_OR_RETURN(out.train, data::Conform(data.train, contract));
  if (data.test.has_value()) {
    DFL_ASSIGN_OR_RETURN(out.test, data::Conform(*data.test, contract));
  }
  DFL_ASSIGN_OR_RETURN(out.standardizer, data::ScalingOf(contract, out.train));
  return out;
}

}  // namespace dfl::config
