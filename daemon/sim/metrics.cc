#include "daemon/sim/metrics.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace dfl::sim {
namespace {

constexpr char kHeader[] =
    "step,time_s,loss_mean_model,mean_loss,consensus_error,bytes_sent,nodes,"
    "lowest_step,highest_step,accuracy,accuracy_mean_model,mass_drift";
constexpr size_t kColumns = 12;
// After those that network.metrics asks for, whose places thus stay.
constexpr char kLastHeader[] = ",sparsity,phi_mean_model";
constexpr size_t kLastColumns = 2;

std::string Number(double value) { return absl::StrFormat("%.17g", value); }

std::string Number(const std::optional<double>& value) {
  return value.has_value() ? Number(*value) : "";
}

bool ReadOptional(absl::string_view cell, std::optional<double>& out) {
  if (cell.empty()) return true;
  double value = 0;
  if (!absl::SimpleAtod(cell, &value)) return false;
  out = value;
  return true;
}

// The columns of a header between the fixed ones; nullopt: it is none.
std::optional<std::vector<std::string>> ReadHeader(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, kHeader)) return std::nullopt;
  if (!absl::ConsumeSuffix(&line, kLastHeader)) return std::nullopt;
  std::vector<std::string> extra;
  while (absl::ConsumePrefix(&line, ",")) {
    const absl::string_view name = line.substr(0, line.find(','));
    if (name.empty()) return std::nullopt;
    extra.emplace_back(name);
    line.remove_prefix(name.size());
  }
  if (!line.empty()) return std::nullopt;
  return extra;
}

bool ReadExtra(absl::Span<const absl::string_view> cells,
               absl::Span<const std::string> names, MetricsRow& row) {
  for (size_t i = 0; i < names.size(); ++i) {
    std::optional<double> value;
    if (!ReadOptional(cells[i], value)) return false;
    if (value.has_value()) row.extra[names[i]] = *value;
  }
  return true;
}

}  // namespace

std::string ToCsv(absl::Span<const MetricsRow> rows,
                  absl::Span<const std::string> extra) {
  std::string out = kHeader;
  for (const std::string& name : extra) absl::StrAppend(&out, ",", name);
  absl::StrAppend(&out, kLastHeader, "\n");
  for (const MetricsRow& row : rows) {
    absl::StrAppend(&out, row.step, ",", Number(row.time_s), ",");
    absl::StrAppend(&out, Number(row.loss_mean_model), ",",
                    Number(row.mean_loss), ",", Number(row.consensus_error),
                    ",");
    absl::StrAppend(&out, row.bytes_sent, ",", row.nodes, ",", row.lowest_step);
    absl::StrAppend(&out, ",", row.highest_step, ",", Number(row.accuracy));
    absl::StrAppend(&out, ",", Number(row.accuracy_mean_model), ",",
                    Number(row.mass_drift));
    for (const std::string& name : extra) {
      const auto found = row.extra.find(name);
      out += ",";
      if (found != row.extra.end()) out += Number(found->second);
    }
    absl::StrAppend(&out, ",", Number(row.sparsity), ",",
                    Number(row.phi_mean_model), "\n");
  }
  return out;
}

absl::StatusOr<std::vector<MetricsRow>> ParseCsv(absl::string_view text,
                                                 absl::string_view file_name) {
  std::vector<MetricsRow> rows;
  std::vector<std::string> extra;
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const auto wrong = [&](absl::string_view allowed) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_name, ":", number, ": allowed: ", allowed));
    };
    if (number == 1) {
      std::optional<std::vector<std::string>> header = ReadHeader(line);
      if (!header.has_value()) {
        return wrong(absl::StrCat(kHeader, kLastHeader));
      }
      extra = *std::move(header);
      continue;
    }
    if (line.empty()) continue;
    const std::vector<absl::string_view> cells = absl::StrSplit(line, ',');
    const size_t columns = kColumns + extra.size() + kLastColumns;
    MetricsRow row;
    const bool good =
        cells.size() == columns && absl::SimpleAtoi(cells[0], &row.step) &&
        absl::SimpleAtod(cells[1], &row.time_s) &&
        absl::SimpleAtod(cells[2], &row.loss_mean_model) &&
        absl::SimpleAtod(cells[3], &row.mean_loss) &&
        absl::SimpleAtod(cells[4], &row.consensus_error) &&
        absl::SimpleAtoi(cells[5], &row.bytes_sent) &&
        absl::SimpleAtoi(cells[6], &row.nodes) &&
        absl::SimpleAtoi(cells[7], &row.lowest_step) &&
        absl::SimpleAtoi(cells[8], &row.highest_step) &&
        ReadOptional(cells[9], row.accuracy) &&
        ReadOptional(cells[10], row.accuracy_mean_model) &&
        ReadOptional(cells[11], row.mass_drift) &&
        ReadExtra(absl::MakeConstSpan(cells).subspan(kColumns), extra, row) &&
        ReadOptional(cells[columns - 2], row.sparsity) &&
        ReadOptional(cells[columns - 1], row.phi_mean_model);
    if (!good) {
      return wrong(absl::StrCat(
          columns,
          " columns, as in the first line: numbers, of which those from "
          "accuracy on may be missing"));
    }
    rows.push_back(row);
  }
  if (number < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ":1: allowed: ", kHeader, kLastHeader));
  }
  return rows;
}

}  // namespace dfl::sim
