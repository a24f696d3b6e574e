#include "daemon/page/history.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace dfl::page {
namespace {

struct ColumnInfo {
  const char* name;
  bool averaged;  // over the moments that a point stands for
};
constexpr ColumnInfo kInfo[kColumns] = {{"step", false},
                                        {"round", false},
                                        {"loss", true},
                                        {"test_loss", false},
                                        {"accuracy", false},
                                        {"consensus", true},
                                        {"bytes_sent", false},
                                        {"dense_bytes_sent", false},
                                        {"bytes_received", false},
                                        {"steps_per_second", true},
                                        {"mixing", false},
                                        {"lag", false}};

std::string NumberText(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    return absl::StrFormat("%.0f", value);
  }
  return absl::StrFormat("%.5g", value);
}

void AppendArray(std::string& out, const char* name,
                 absl::Span<const Point> points,
                 const std::function<std::string(const Point&)>& text) {
  absl::StrAppend(&out, out.size() > 1 ? "," : "", "\"", name, "\":[");
  bool first = true;
  for (const Point& point : points) {
    absl::StrAppend(&out, first ? "" : ",", text(point));
    first = false;
  }
  out += "]";
}

}  // namespace

const char* NameOf(Column column) {
  return kInfo[static_cast<size_t>(column)].name;
}

std::string ToJson(absl::Span<const Point> points) {
  std::string out = "{";
  AppendArray(out, "t", points, [](const Point& point) {
    return absl::StrFormat("%.1f", point.at_s);
  });
  for (size_t column = 0; column < kColumns; ++column) {
    const bool empty =
        std::none_of(points.begin(), points.end(), [&](const Point& point) {
          return std::isfinite(point.values[column]);
        });
    if (empty) continue;
    AppendArray(out, kInfo[column].name, points, [&](const Point& point) {
      return NumberText(point.values[column]);
    });
  }
  return out + "}";
}

void History::Bucket::Begin(int64_t new_number) {
  number = new_number;
  sums.fill(0);
  counts.fill(0);
}

void History::Bucket::Take(const Point& point) {
  last = point;
  for (size_t column = 0; column < kColumns; ++column) {
    if (!std::isfinite(point.values[column])) continue;
    sums[column] += point.values[column];
    ++counts[column];
  }
}

Point History::Bucket::Value() const {
  Point value = last;
  for (size_t column = 0; column < kColumns; ++column) {
    if (kInfo[column].averaged && counts[column] > 0) {
      value.values[column] = sums[column] / static_cast<double>(counts[column]);
    }
  }
  return value;
}

void History::Add(const Point& point) {
  if (!(point.at_s > last_s_)) return;
  last_s_ = point.at_s;
  for (size_t tier = 0; tier < kTiers.size(); ++tier) {
    const auto number =
        static_cast<int64_t>(point.at_s / kTiers[tier].interval_s);
    Bucket& open = open_[tier];
    if (open.number >= 0 && number != open.number) {
      tiers_[tier].push_back(open.Value());
      if (tiers_[tier].size() > kTiers[tier].points) tiers_[tier].pop_front();
    }
    if (number != open.number) open.Begin(number);
    open.Take(point);
  }
}

std::vector<Point> History::All() const {
  // From fine to coarse: of each span what is older than all before it.
  std::vector<Point> newest_first;
  if (open_[0].number >= 0) newest_first.push_back(open_[0].Value());
  for (size_t tier = 0; tier < kTiers.size(); ++tier) {
    for (auto point = tiers_[tier].rbegin(); point != tiers_[tier].rend();
         ++point) {
      if (newest_first.empty() || point->at_s < newest_first.back().at_s) {
        newest_first.push_back(*point);
      }
    }
  }
  std::reverse(newest_first.begin(), newest_first.end());
  return newest_first;
}

}  // namespace dfl::page
