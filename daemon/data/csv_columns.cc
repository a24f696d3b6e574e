#include "daemon/data/csv_columns.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/csv.h"
#include "daemon/data/data_error.h"
#include "daemon/data/labels.h"
#include "daemon/data/text.h"

namespace dfl {
namespace data {
namespace {

constexpr char kHeaderCure[] =
    "data.header: yes (it names the columns), no (it is a row) or skip (pass "
    "over it)";

// What a field looks like.
enum class Look { kNumber, kMissing, kText };

Look LookOf(absl::string_view field) {
  if (IsMissing(field)) return Look::kMissing;
  float value;
  return ParseValue(field, &value) == nullptr ? Look::kNumber : Look::kText;
}

// The index that `column` spells, in [0, width), or nothing.
std::optional<size_t> IndexOf(const std::string& column, size_t width) {
  int64_t index;
  if (!absl::SimpleAtoi(column, &index)) return std::nullopt;
  if (index < 0) index += static_cast<int64_t>(width);
  if (index < 0 || index >= static_cast<int64_t>(width)) return std::nullopt;
  return static_cast<size_t>(index);
}

bool IsInteger(const std::string& column) {
  int64_t index;
  return absl::SimpleAtoi(column, &index);
}

// What the fields of the first line are, next to those below.
struct FirstLine {
  size_t names = 0;     // texts above numbers
  size_t values = 0;    // numbers
  size_t blanks = 0;    // missing
  bool quoted = true;   // numbers in quotes above plain ones
  bool counts = true;   // 0, 1, 2, ... or 1, 2, 3, ...
  bool from_0 = false;  // the first of these
  size_t numbers = 0;   // in any column
  bool has_text = false;
  bool known_word = false;  // one that stands below in its column, too
  std::string name;         // a name, for errors
  std::string value;        // a value likewise
};

// The fields of one line, and whether each was in quotes.
bool Split(const DataSpec& spec, const CsvLine& line,
           std::vector<std::string>* fields) {
  std::string scratch;
  std::vector<absl::string_view> views;
  if (SplitCsvLine(line.text, spec.delimiter, &scratch, &views) != nullptr) {
    return false;
  }
  fields->clear();
  for (const absl::string_view view : views) fields->emplace_back(view);
  return true;
}

FirstLine Compare(const DataSpec& spec, absl::Span<const CsvLine> lines,
                  const std::vector<std::string>& first) {
  std::vector<std::vector<std::string>> below;
  bool quotes_below = false;
  for (const CsvLine& line : lines.subspan(1)) {
    std::vector<std::string> fields;
    if (!Split(spec, line, &fields) || fields.size() != first.size()) continue;
    quotes_below |= line.text.find('"') != std::string::npos;
    below.push_back(std::move(fields));
  }
  FirstLine seen;
  const auto quotes =
      std::count(lines[0].text.begin(), lines[0].text.end(), '"');
  seen.quoted =
      !quotes_below && quotes >= static_cast<std::ptrdiff_t>(2 * first.size());
  std::optional<int64_t> previous;
  for (size_t i = 0; i < first.size(); ++i) {
    // Whether the column holds words: then a word in the first line says
    // nothing.
    bool words = false;
    bool numbers = false;
    for (const std::vector<std::string>& fields : below) {
      words |= LookOf(fields[i]) == Look::kText;
      numbers |= LookOf(fields[i]) == Look::kNumber;
    }
    const Look look = LookOf(first[i]);
    seen.has_text |= look == Look::kText;
    if (look == Look::kNumber) {
      ++seen.numbers;
      int64_t count = -1;
      const bool is_integer = absl::SimpleAtoi(first[i], &count);
      const bool follows =
          previous ? count > *previous && count - 1 == *previous : count <= 1;
      if (!previous) seen.from_0 = count == 0;
      seen.counts &= is_integer && follows && count >= 0;
      previous = count;
    }
    if (words) {
      seen.known_word |= std::any_of(
          below.begin(), below.end(),
          [&](const auto& fields) { return fields[i] == first[i]; });
      continue;
    }
    // With one line only, a label in words is a label.
    if (below.empty() && IndexOf(spec.label_column, first.size()) == i) {
      continue;
    }
    if (look == Look::kText) {
      ++seen.names;
      seen.name = first[i];
    } else if (look == Look::kMissing) {
      ++seen.blanks;
    } else if (numbers || below.empty()) {
      ++seen.values;
      seen.value = first[i];
    }
  }
  seen.counts &= previous.has_value();
  return seen;
}

std::string Listed(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (size_t i = 0; i < names.size() && i < 20; ++i) {
    quoted.push_back(Quoted(names[i]));
  }
  return absl::StrCat(absl::StrJoin(quoted, " "),
                      names.size() > 20 ? " ..." : "");
}

absl::StatusOr<size_t> FindColumn(const std::string& column,
                                  absl::string_view setting,
                                  const std::vector<std::string>& names,
                                  size_t width, const std::string& path,
                                  int64_t line) {
  const auto named = std::find(names.begin(), names.end(), column);
  const auto at = static_cast<size_t>(named - names.begin());
  if (IsInteger(column)) {
    const std::optional<size_t> index = IndexOf(column, width);
    // "-1" is the last column whatever the header says. "3" where another
    // column is called 3 may mean either.
    if (named != names.end() && (!index || *index != at) && column[0] != '-') {
      return WrongContent(
          path, AtLine(line),
          absl::StrCat(setting, " ", Quoted(column), " is the name of column ",
                       at, index ? " and the index of another" : ""),
          absl::StrCat(
              "an index from the end, which no name can be: ",
              static_cast<int64_t>(at) - static_cast<int64_t>(width),
              index ? absl::StrCat(" or ", static_cast<int64_t>(*index) -
                                               static_cast<int64_t>(width))
                    : ""));
    }
    if (index) return *index;
  } else if (named != names.end()) {
    return at;
  }
  const auto signed_width = static_cast<int64_t>(width);
  return WrongContent(
      path, AtLine(line),
      absl::StrCat("there is no column ", Quoted(column), ", which ", setting,
                   " names"),
      absl::StrCat("an index from ", -signed_width, " to ", signed_width - 1,
                   names.empty()
                       ? " (no header was read)"
                       : absl::StrCat(" or a name: ", Listed(names))));
}

// Views of names.
using NameSet = std::set<absl::string_view>;

NameSet SetOf(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

// Those of `wanted` that `names` lacks.
std::vector<std::string> Lacking(const NameSet& names,
                                 const std::vector<std::string>& wanted) {
  std::vector<std::string> lacking;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(lacking),
               [&](const std::string& name) { return names.count(name) == 0; });
  return lacking;
}

absl::Status CheckNames(const CsvColumns& columns, const std::string& path,
                        int64_t line) {
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < columns.names.size(); ++i) {
    if (columns.feature_of[i] == CsvColumns::kNone && i != columns.label) {
      continue;
    }
    const auto [first, is_new] = seen.emplace(columns.names[i], i);
    if (is_new) continue;
    return WrongContent(
        path, AtLine(line),
        absl::StrCat("columns ", first->second, " and ", i,
                     " have the same name, ", Quoted(columns.names[i])),
        "a name for each column; or data.header: skip, which takes them by "
        "place");
  }
  return absl::OkStatus();
}

// Puts the features into the order of `match`.
absl::Status Match(const ColumnMatch& match, CsvColumns* columns,
                   const std::string& path, int64_t line) {
  const std::vector<std::string> own = columns->FeatureNames();
  const std::vector<std::string> missing = Lacking(SetOf(own), match.features);
  const std::vector<std::string> extra = Lacking(SetOf(match.features), own);
  if (!missing.empty() || !extra.empty()) {
    // An index that was written to the first file alone.
    const auto index = std::find_if(missing.begin(), missing.end(),
                                    [](const std::string& name) {
                                      return absl::StartsWith(name, kNameless);
                                    });
    return WrongContent(
        path, AtLine(line),
        absl::StrCat(
            "the header differs from the first file's: ",
            missing.empty() ? "" : absl::StrCat("without ", Listed(missing)),
            missing.empty() || extra.empty() ? "" : ", ",
            extra.empty() ? "" : absl::StrCat("with ", Listed(extra))),
        absl::StrCat(
            "the columns ", Listed(match.features),
            " in any order; data.drop_columns",
            index == missing.end() ? "" : absl::StrCat(": [\"", *index, "\"]"),
            " leaves columns out of all files"));
  }
  std::map<absl::string_view, int64_t> places;
  for (const std::string& name : match.features) {
    places.emplace(name, static_cast<int64_t>(places.size()));
  }
  for (size_t i = 0; i < columns->names.size(); ++i) {
    if (columns->feature_of[i] == CsvColumns::kNone) continue;
    columns->feature_of[i] = places.at(columns->names[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> StartsWithHeader(const DataSpec& spec,
                                      absl::Span<const CsvLine> lines,
                                      const std::string& path) {
  std::vector<std::string> first;
  if (lines.empty() || !Split(spec, lines[0], &first)) return false;
  // A column that the settings name by its name must be in a header.
  std::vector<std::string> used = spec.drop_columns;
  used.push_back(spec.label_column);
  for (const std::string& column : used) {
    if (!IsInteger(column) &&
        std::find(first.begin(), first.end(), column) != first.end()) {
      return true;
    }
  }
  const FirstLine seen = Compare(spec, lines, first);
  const auto unclear = [&](absl::string_view found) {
    return WrongContent(path, AtLine(lines[0].number), found, kHeaderCure);
  };
  if (seen.known_word) return false;
  const bool few_blanks =
      seen.blanks == 0 || (seen.blanks == 1 && IsMissing(first[0]));
  if (seen.names == 0) {
    if (seen.quoted) return true;  // as R writes names that are numbers
    if (!seen.counts || !few_blanks || seen.numbers < 2) return false;
    const bool likely = seen.from_0 && seen.numbers >= 4;
    if (seen.has_text ? seen.numbers < 3 : likely) {
      return !seen.has_text;
    }
    return unclear(absl::StrCat("the line counts from ", first[0],
                                ", as a header without names does"));
  }
  const bool all_names = seen.values == 0 || seen.quoted || seen.counts;
  if (all_names && few_blanks) return true;
  return unclear(absl::StrCat(
      Quoted(seen.name), " is a word where the rows below have numbers, ",
      seen.values > 0 ? absl::StrCat("and ", Quoted(seen.value), " a number")
                      : absl::StrCat("and ", seen.blanks, " fields are empty"),
      ": a header, or a row with a wrong value"));
}

std::vector<std::string> CsvColumns::FeatureNames() const {
  std::vector<std::string> out;
  if (names.empty()) return out;
  out.resize(static_cast<size_t>(features));
  for (size_t i = 0; i < names.size(); ++i) {
    if (feature_of[i] != kNone) {
      out[static_cast<size_t>(feature_of[i])] = names[i];
    }
  }
  return out;
}

absl::StatusOr<CsvColumns> ChooseColumns(const DataSpec& spec,
                                         const ColumnMatch& match,
                                         std::vector<std::string> names,
                                         size_t width, const std::string& path,
                                         int64_t line) {
  CsvColumns columns;
  columns.names = std::move(names);
  int nameless = 0;
  for (std::string& name : columns.names) {
    if (name.empty()) name = absl::StrCat(kNameless, nameless++);
  }
  const bool by_name = !match.features.empty() && !columns.names.empty();
  // By its index the label may be another column in this file.
  const auto same =
      std::find(columns.names.begin(), columns.names.end(), match.label);
  if (by_name && !match.label.empty() && same != columns.names.end()) {
    columns.label = static_cast<size_t>(same - columns.names.begin());
  } else {
    DFL_ASSIGN_OR_RETURN(columns.label,
                         FindColumn(spec.label_column, "data.label_column",
                                    columns.names, width, path, line));
  }
  std::vector<bool> is_feature(width, true);
  is_feature[columns.label] = false;
  NameSet dropped = SetOf(match.dropped);
  dropped.insert(spec.drop_columns.begin(), spec.drop_columns.end());
  for (size_t i = 0; by_name && i < width; ++i) {
    if (dropped.count(columns.names[i]) > 0) is_feature[i] = false;
  }
  for (const std::string& column : spec.drop_columns) {
    if (by_name) break;
    DFL_ASSIGN_OR_RETURN(const size_t found,
                         FindColumn(column, "data.drop_columns", columns.names,
                                    width, path, line));
    if (found == columns.label) {
      return WrongContent(
          path, AtLine(line),
          absl::StrCat("column ", Quoted(column), " is the label and dropped"),
          "one of the two");
    }
    is_feature[found] = false;
  }
  for (size_t i = 0; i < width; ++i) {
    columns.feature_of.push_back(is_feature[i] ? columns.features++
                                               : CsvColumns::kNone);
  }
  if (columns.features == 0) {
    return WrongContent(
        path, AtLine(line),
        absl::StrCat(width, " fields, none left as a feature"),
        absl::StrCat("at least one besides the label; is the delimiter ",
                     Quoted(absl::string_view(&spec.delimiter, 1)),
                     "? data.delimiter sets another"));
  }
  DFL_RETURN_IF_ERROR(CheckNames(columns, path, line));
  if (by_name) DFL_RETURN_IF_ERROR(Match(match, &columns, path, line));
  return columns;
}

std::vector<std::string> CsvColumns::DroppedNames() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (feature_of[i] == kNone && i != label) out.push_back(names[i]);
  }
  return out;
}

std::string DropCure(const CsvColumns& columns, size_t column) {
  const std::string index = absl::StrCat(column);
  const auto named =
      std::find(columns.names.begin(), columns.names.end(), index);
  const bool taken =
      named != columns.names.end() &&
      static_cast<size_t>(named - columns.names.begin()) != column;
  return absl::StrCat(
      "data.drop_columns: [\"",
      taken ? absl::StrCat(static_cast<int64_t>(column) -
                           static_cast<int64_t>(columns.feature_of.size()))
            : index,
      "\"]");
}

}  // namespace data
}  // namespace dfl
