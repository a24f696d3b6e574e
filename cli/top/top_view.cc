#include "cli/top/top_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/status_table.h"

namespace dfl::cli {
namespace {

constexpr double kNever = 1e300;
constexpr size_t kLinesAround = 4;  // summary, hint, titles, keys
constexpr char kConsensusGauge[] = "consensus_distance";

template <typename T>
double Value(const std::optional<T>& value) {
  return value.has_value() ? static_cast<double>(*value) : kNever;
}

// Smaller first. The names of columns where nothing smaller comes first are
// sorted by their texts alone.
struct Column {
  const char* name;
  double (*value)(const TopRow& row);
};

double Zero(const TopRow&) { return 0; }

// The first is the node's name, which decides where the others are alike.
const Column kColumns[] = {
    {"node", Zero},
    {"state",
     [](const TopRow& row) {
       // What needs a person comes first.
       const std::map<std::string, double> ranks = {
           {"degraded", 0}, {"suspect", 1}, {"dead", 2},   {"joining", 3},
           {"draining", 4}, {"alone", 5},   {"member", 6}, {"left", 7}};
       const auto rank = ranks.find(row.state);
       return rank == ranks.end() ? 8.0 : rank->second;
     }},
    {"step", [](const TopRow& row) { return Value(row.step); }},
    {"rate", [](const TopRow& row) { return Value(row.steps_per_second); }},
    {"loss", [](const TopRow& row) { return -Value(row.loss); }},
    {"score", [](const TopRow& row) { return Value(row.score_value); }},
    {"neighbours",
     [](const TopRow& row) {
       return static_cast<double>(row.mixing - row.neighbours);
     }},
    {"staleness", [](const TopRow& row) { return -Value(row.staleness); }},
    {"distance",
     [](const TopRow& row) { return -Value(row.consensus_distance); }},
    {"saved", [](const TopRow& row) { return Value(row.saved); }},
    {"age", [](const TopRow& row) { return -Value(row.age_seconds); }},
};

// What is not known stands last, whichever way the rest is sorted.
bool Known(double value) { return std::abs(value) < kNever; }

void SortRows(const Column& column, bool reverse, std::vector<TopRow>& rows) {
  std::sort(rows.begin(), rows.end(), [&](const TopRow& a, const TopRow& b) {
    const double left = column.value(a);
    const double right = column.value(b);
    if (Known(left) != Known(right)) return Known(left);
    if (Known(left) && left != right) {
      return reverse ? left > right : left < right;
    }
    const bool by_name = column.value == Zero;
    return reverse && by_name ? a.node > b.node : a.node < b.node;
  });
}

std::string Number(const std::optional<double>& value, int digits) {
  return value.has_value() ? Fixed(*value, digits) : "-";
}

std::string Integer(const std::optional<int64_t>& value) {
  return value.has_value() ? absl::StrCat(*value) : "-";
}

console::Table TableOf(const std::vector<TopRow>& rows) {
  console::Table table({"NODE", "STATE", "PHASE", ">STEP", ">STEPS/S", ">LOSS",
                        ">SCORE", ">NEIGHBOURS", ">STALE", ">DISTANCE",
                        ">SAVED", ">AGE", "NOTE"});
  for (const TopRow& row : rows) {
    const bool answers = row.step.has_value();
    table.Add({row.node, row.state, row.phase, Integer(row.step),
               Number(row.steps_per_second, 1), Number(row.loss, 4), row.score,
               answers ? absl::StrCat(row.mixing, "/", row.neighbours) : "-",
               Integer(row.staleness), Number(row.consensus_distance, 4),
               row.saved.has_value()
                   ? absl::StrCat(std::floor(100 * *row.saved), "%")
                   : "-",
               row.age_seconds.has_value()
                   ? HumanSeconds(std::floor(*row.age_seconds))
                   : "-",
               row.note});
  }
  return table;
}

// The first `width` characters of UTF-8 text.
std::string Cut(const std::string& text, int width) {
  int seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (seen++ == width) return text.substr(0, i);
  }
  return text;
}

}  // namespace

TopRow ToTopRow(const MemberReport& report) {
  TopRow row;
  const client::Member& member = report.member;
  row.node = member.node;
  row.state = StateText(member);
  row.phase = "-";
  row.note = member.reason;
  if (!report.status.ok()) {
    if (row.note.empty())
      row.note = std::string(report.status.status().message());
    return row;
  }
  const client::NodeStatus& node = report.status->node;
  row.phase = client::PhaseName(node.phase);
  row.step = node.step;
  row.steps_per_second = node.steps_per_second;
  row.loss = node.loss;
  row.score = ScoreText(node);
  if (node.evaluation.has_value()) {
    const client::Evaluation& scores = *node.evaluation;
    row.score_value = scores.accuracy.has_value() ? scores.accuracy : scores.r2;
    if (!row.score_value.has_value() && scores.mae.has_value()) {
      row.score_value = -*scores.mae;
    }
  }
  for (const client::PeerStatus& peer : node.peers) {
    if (!peer.neighbour) continue;
    ++row.neighbours;
    if (peer.mixing) ++row.mixing;
    if (!peer.linked || peer.phase == client::Phase::kUnknown) continue;
    const int64_t behind = std::max<int64_t>(0, node.step - peer.step);
    row.staleness = std::max(row.staleness.value_or(0), behind);
  }
  const auto distance = node.gauges.find(kConsensusGauge);
  if (distance != node.gauges.end()) row.consensus_distance = distance->second;
  if (node.dense_bytes_sent > 0) {
    row.saved = 1 - static_cast<double>(node.bytes_sent) /
                        static_cast<double>(node.dense_bytes_sent);
  }
  row.age_seconds = std::max(0.0, report.age_seconds);
  if (row.note.empty()) {
    row.note = node.last_error.empty() ? node.alone : node.last_error;
  }
  return row;
}

Json ToJsonValue(const TopRow& row) {
  const auto value = [](const auto& optional) {
    return optional.has_value() ? Json(*optional) : Json();
  };
  return Json{{"node", row.node},
              {"state", row.state},
              {"phase", row.phase == "-" ? Json() : Json(row.phase)},
              {"step", value(row.step)},
              {"steps_per_second", value(row.steps_per_second)},
              {"loss", value(row.loss)},
              {"score", value(row.score_value)},
              {"neighbours_mixing", row.mixing},
              {"neighbours", row.neighbours},
              {"staleness_steps", value(row.staleness)},
              {"consensus_distance", value(row.consensus_distance)},
              {"saved_share", value(row.saved)},
              {"age_seconds", value(row.age_seconds)},
              {"note", row.note.empty() ? Json() : Json(row.note)}};
}

const std::vector<std::string>& TopSortNames() {
  static const auto* const kNames = [] {
    auto* names = new std::vector<std::string>();
    for (const Column& column : kColumns) names->emplace_back(column.name);
    return names;
  }();
  return *kNames;
}

TopView::TopView(std::string target, std::string sort, std::string filter)
    : target_(std::move(target)), filter_(std::move(filter)) {
  const std::vector<std::string>& names = TopSortNames();
  const auto found = std::find(names.begin(), names.end(), sort);
  if (found != names.end()) sort_ = static_cast<size_t>(found - names.begin());
}

void TopView::Take(const absl::StatusOr<Survey>& survey) {
  if (paused_) return;
  error_ = survey.status();
  if (!survey.ok()) return;
  any_ = true;
  rows_.clear();
  for (const MemberReport& report : survey->members) {
    rows_.push_back(ToTopRow(report));
  }
}

bool TopView::OnKey(int key) {
  if (typing_) {
    if (key == kKeyEnter) {
      typing_ = false;
    } else if (key == kKeyEscape) {
      typing_ = false;
      filter_.clear();
    } else if (key == kKeyBackspace) {
      if (!filter_.empty()) filter_.pop_back();
    } else if (key >= ' ' && key < 0x7F) {
      filter_ += static_cast<char>(key);
    }
    first_ = 0;
    return true;
  }
  const size_t columns = TopSortNames().size();
  switch (key) {
    case 'q':
      return false;
    case 's':
    case '>':
      sort_ = (sort_ + 1) % columns;
      break;
    case 'S':
    case '<':
      sort_ = (sort_ + columns - 1) % columns;
      break;
    case 'r':
      reverse_ = !reverse_;
      break;
    case '/':
      typing_ = true;
      break;
    case 'p':
      paused_ = !paused_;
      break;
    case kKeyEscape:
      filter_.clear();
      break;
    case kKeyDown:
      ++first_;
      break;
    case kKeyUp:
      first_ -= first_ > 0 ? 1 : 0;
      break;
    case kKeyPageDown:
      first_ += 10;
      break;
    case kKeyPageUp:
      first_ -= std::min<size_t>(first_, 10);
      break;
    default:
      break;
  }
  const size_t rows = Rows().size();
  first_ = rows == 0 ? 0 : std::min(first_, rows - 1);
  return true;
}

std::vector<TopRow> TopView::Rows() const {
  std::vector<TopRow> rows;
  for (const TopRow& row : rows_) {
    const bool shown = filter_.empty() ||
                       absl::StrContains(row.node, filter_) ||
                       absl::StrContains(row.state, filter_) ||
                       absl::StrContains(row.phase, filter_);
    if (shown) rows.push_back(row);
  }
  SortRows(kColumns[sort_], reverse_, rows);
  return rows;
}

std::string TopView::Summary() const {
  std::map<std::string, int> states;
  for (const TopRow& row : rows_) ++states[row.state];
  std::vector<std::string> counts;
  for (const auto& [state, count] : states) {
    counts.push_back(absl::StrCat(count, " ", state));
  }
  return absl::StrCat(
      "dflctl top  ", target_, "  ",
      any_ ? absl::StrCat(rows_.size(),
                          rows_.size() == 1 ? " node: " : " nodes: ",
                          absl::StrJoin(counts, ", "))
           : "waiting for the first answer",
      paused_ ? "  PAUSED" : "");
}

std::string TopView::Hint() const {
  if (!error_.ok()) return absl::StrCat("! ", error_.message());
  return absl::StrCat(
      "sorted by ", TopSortNames()[sort_], reverse_ ? ", reversed" : "",
      filter_.empty() && !typing_
          ? ""
          : absl::StrCat("  filter: ", filter_, typing_ ? "_" : ""));
}

std::vector<std::string> TopView::Lines(int width, int height) const {
  const size_t all = static_cast<size_t>(std::max(height, 0));
  std::vector<std::string> lines = {Printable(Summary()), Printable(Hint())};
  const std::vector<TopRow> rows = Rows();
  std::vector<std::string> table =
      absl::StrSplit(absl::StripSuffix(TableOf(rows).ToString(), "\n"), '\n');
  lines.push_back(table[0]);
  const size_t room = all > kLinesAround ? all - kLinesAround : 0;
  const size_t last = rows.size() > room ? rows.size() - room : 0;
  const size_t first = std::min(first_, last);
  for (size_t i = first; i < rows.size() && i < first + room; ++i) {
    lines.push_back(table[i + 1]);
  }
  if (all > 0) lines.resize(all - 1);
  lines.emplace_back(
      typing_
          ? "Enter keeps the filter  Esc drops it"
          : "q quit  s/S sort  r reverse  / filter  p pause  arrows scroll");
  lines.resize(all);
  for (std::string& line : lines) line = Cut(line, width);
  return lines;
}

std::string TopView::Table() const { return TableOf(Rows()).ToString(); }

}  // namespace dfl::cli
