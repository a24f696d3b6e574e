#include "cli/data_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/fleet_data.h"
#include "daemon/core/contract/data_contract.h"

namespace dfl::cli {
namespace {

using core::ContractField;

std::string NumberText(double value) { return absl::StrFormat("%.6g", value); }

std::string RowsText(const client::NodeData& data) {
  return absl::StrCat(data.train_rows, " to train on, ", data.test_rows,
                      " to test on", data.format.empty() ? "" : ", from ",
                      data.format);
}

// Longer values are cut: JSON has all of them.
std::string Cut(const std::string& text) {
  constexpr size_t kShown = 160;
  if (text.size() <= kShown) return text;
  return absl::StrCat(text.substr(0, kShown), "... (-o json has all)");
}

std::string ContractText(const client::NodeData& data) {
  std::vector<std::pair<std::string, std::string>> lines = {
      {"  rows", RowsText(data)}};
  const core::DataContract offer = ContractOf(data.offer);
  const core::DataContract contract =
      data.contract.has_value() ? ContractOf(*data.contract) : offer;
  for (const ContractField field : core::kContractFields) {
    const std::string found = core::FieldText(offer, field);
    const std::string agreed = core::FieldText(contract, field);
    std::string text =
        Cut(agreed.empty() ? "not known without a plan" : agreed);
    if (data.contract.has_value() && found != agreed && !found.empty()) {
      absl::StrAppend(&text, "; its own files and settings: ", Cut(found));
    }
    lines.emplace_back(absl::StrCat("  ", core::FieldName(field)),
                       std::move(text));
  }
  lines.emplace_back("  contract", data.contract.has_value()
                                       ? "in force, as above"
                                       : "none yet: there is no plan");
  return KeyValueLines(lines);
}

std::string ClassesText(const client::NodeData& data) {
  Table table({"CLASS", ">TRAIN", ">TEST"});
  for (const client::ClassCount& count : data.classes) {
    table.Add({count.name, absl::StrCat(count.train_rows),
               absl::StrCat(count.test_rows)});
  }
  return table.empty() ? "" : absl::StrCat("\n", table.ToString());
}

std::string FeaturesText(const client::NodeData& data, int64_t features) {
  const size_t shown =
      std::min(data.features.size(),
               static_cast<size_t>(std::max<int64_t>(features, 0)));
  if (shown == 0) return "";
  Table table({">FEATURE", "NAME", ">MIN", ">MAX", ">MEAN", ">MISSING"});
  for (size_t i = 0; i < shown; ++i) {
    const client::FeatureRange& range = data.features[i];
    table.Add({absl::StrCat(i), range.name, NumberText(range.min),
               NumberText(range.max), NumberText(range.mean),
               absl::StrCat(range.missing)});
  }
  std::string text = absl::StrCat("\n", table.ToString());
  if (static_cast<int64_t>(shown) < data.feature_count) {
    absl::StrAppend(&text, "and ",
                    data.feature_count - static_cast<int64_t>(shown),
                    " more features: --features N\n");
  }
  return text;
}

Json ContractJson(const client::DataContract& contract) {
  return Json{{"task", contract.task},
              {"classes", contract.classes},
              {"features", contract.features},
              {"shape", contract.shape},
              {"input",
               {{"divide", contract.input.divide},
                {"per", contract.input.per},
                {"over", contract.input.over},
                {"mean", contract.input.mean},
                {"std", contract.input.std}}},
              {"loss", contract.loss},
              {"model", contract.model}};
}

}  // namespace

std::string DataText(const client::NodeData& data, int64_t features) {
  return absl::StrCat(ContractText(data), ClassesText(data),
                      FeaturesText(data, features));
}

Json DataJson(const client::NodeData& data) {
  Json classes = Json::array();
  for (const client::ClassCount& count : data.classes) {
    classes.push_back(Json{{"name", count.name},
                           {"train_rows", count.train_rows},
                           {"test_rows", count.test_rows}});
  }
  Json features = Json::array();
  for (const client::FeatureRange& range : data.features) {
    features.push_back(Json{{"name", range.name},
                            {"min", range.min},
                            {"max", range.max},
                            {"mean", range.mean},
                            {"missing", range.missing}});
  }
  return Json{
      {"node", data.node},
      {"format", data.format},
      {"train_rows", data.train_rows},
      {"test_rows", data.test_rows},
      {"classes", std::move(classes)},
      {"feature_count", data.feature_count},
      {"features", std::move(features)},
      {"offer", ContractJson(data.offer)},
      {"classes_stated", data.classes_stated},
      {"shape_is_at_least", data.shape_is_at_least},
      {"contract",
       data.contract.has_value() ? ContractJson(*data.contract) : Json()},
      {"warnings", data.warnings}};
}

}  // namespace dfl::cli
