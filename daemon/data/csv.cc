#include "daemon/data/csv.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/csv_columns.h"
#include "daemon/data/data_error.h"
#include "daemon/data/labels.h"
#include "daemon/data/missing.h"
#include "daemon/data/readers.h"
#include "daemon/data/spec_checks.h"
#include "daemon/data/text.h"

namespace dfl {
namespace data {

const char* SplitCsvLine(absl::string_view line, char delimiter,
                         std::string* scratch,
                         std::vector<absl::string_view>* fields) {
  fields->clear();
  scratch->clear();
  scratch->reserve(line.size());  // views into it stay valid
  const auto is_space = [delimiter](char c) {
    return (c == ' ' || c == '\t') && c != delimiter;
  };
  size_t i = 0;
  while (true) {
    while (i < line.size() && is_space(line[i])) ++i;
    if (i < line.size() && line[i] == '"') {
      const size_t start = scratch->size();
      ++i;
      while (true) {
        if (i == line.size()) {
          fields->emplace_back("\"");
          return "opens a quote that the line does not close";
        }
        if (line[i] == '"') {
          if (i + 1 < line.size() && line[i + 1] == '"') {
            ++i;
          } else {
            break;
          }
        }
        scratch->push_back(line[i++]);
      }
      ++i;
      fields->emplace_back(scratch->data() + start, scratch->size() - start);
      while (i < line.size() && is_space(line[i])) ++i;
      if (i < line.size() && line[i] != delimiter) {
        return "goes on after its closing quote";
      }
    } else {
      const size_t stop = std::min(line.find(delimiter, i), line.size());
      size_t last = stop;
      while (last > i && is_space(line[last - 1])) --last;
      fields->push_back(line.substr(i, last - i));
      i = stop;
    }
    if (i == line.size()) return nullptr;
    ++i;  // the delimiter
  }
}

namespace {

// What tells a feature from a row number or a time: how it goes from row to
// row.
struct Course {
  bool rises = true;   // each value is above the one before
  bool counts = true;  // by one
  bool whole = true;
  double previous = 0;
};

// Columns that are warned of one by one.
constexpr size_t kMostWarnings = 5;

class CsvReader {
 public:
  explicit CsvReader(const DataSpec& spec)
      : spec_(spec), match_(spec.match), labels_(spec) {}

  absl::Status ReadFile(const std::string& path) {
    DFL_ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
    std::vector<CsvLine> lines;
    absl::string_view line;
    bool more = true;
    while (lines.size() < kCsvLinesToJudge) {
      DFL_ASSIGN_OR_RETURN(more, reader.Next(&line));
      if (!more) break;
      lines.push_back({std::string(line), reader.line_number()});
    }
    const int64_t rows_before = rows_ + columns_of_set_.dropped_rows;
    DFL_RETURN_IF_ERROR(ReadStart(lines, path));
    lines.clear();
    while (more) {
      DFL_ASSIGN_OR_RETURN(more, reader.Next(&line));
      if (more) DFL_RETURN_IF_ERROR(ReadRow(line, path, reader.line_number()));
    }
    if (rows_ + columns_of_set_.dropped_rows == rows_before) {
      return WrongContent(path, AtLine(reader.line_number() + 1), "no rows",
                          "at least one");
    }
    Warn(path);
    return absl::OkStatus();
  }

  absl::StatusOr<Dataset> Finish() {
    const std::string& last = spec_.paths.back();
    DFL_RETURN_IF_ERROR(CheckRows(spec_, rows_ + columns_of_set_.dropped_rows,
                                  last, "all files together"));
    if (rows_ == 0) {
      return WrongContent(last, "all rows",
                          "every row has a missing value and is dropped",
                          "data.missing: mean or zero");
    }
    const int64_t d = static_cast<int64_t>(features_.size()) / rows_;
    DFL_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                         ResolveShape(spec_, {d}, last, AtLine(1)));
    if (spec_.task == Task::kClassification) {
      DFL_ASSIGN_OR_RETURN(answers_, labels_.Finish());
    }
    columns_of_set_.names = match_.features;
    columns_of_set_.label = match_.label;
    columns_of_set_.dropped = match_.dropped;
    if (warned_.size() > kMostWarnings) {
      const size_t more = warned_.size() - kMostWarnings;
      columns_of_set_.warnings.push_back(
          absl::StrCat(spec_.paths[0], ": ", more,
                       more == 1 ? " more column rises" : " more columns rise",
                       " from row to row"));
    }
    if (spec_.missing == Missing::kMean || spec_.missing == Missing::kZero) {
      DFL_RETURN_IF_ERROR(FillMissing(spec_, d, last, absl::MakeSpan(features_),
                                      &columns_of_set_));
    }
    return Dataset(std::move(shape), std::move(features_), std::move(answers_),
                   std::move(columns_of_set_));
  }

 private:
  // Settles header and columns from a file's first lines, and reads them.
  absl::Status ReadStart(const std::vector<CsvLine>& lines,
                         const std::string& path) {
    size_t next = spec_.header == Header::kSkip ? 1 : 0;
    if (next >= lines.size()) return absl::OkStatus();
    bool header = spec_.header == Header::kYes;
    if (spec_.header == Header::kAuto) {
      DFL_ASSIGN_OR_RETURN(header, StartsWithHeader(spec_, lines, path));
    }
    DFL_RETURN_IF_ERROR(Split(lines[next].text, path, lines[next].number));
    std::vector<std::string> names;
    for (const absl::string_view field : fields_) {
      if (header) names.emplace_back(field);
    }
    const size_t width = fields_.size();
    if (rows_ > 0 && width != width_) {
      return WrongContent(path, AtLine(lines[next].number),
                          absl::StrCat(width, " fields"),
                          absl::StrCat(width_, ", as in ", spec_.paths[0]));
    }
    width_ = width;
    DFL_ASSIGN_OR_RETURN(
        columns_, ChooseColumns(spec_, match_, std::move(names), width, path,
                                lines[next].number));
    const auto expected = static_cast<int64_t>(match_.features.size());
    if (expected != 0 && columns_.features != expected) {
      return WrongContent(
          path, AtLine(lines[next].number),
          absl::StrCat(columns_.features, " features without names"),
          absl::StrCat(expected, ", as the files read before: ",
                       SomeOf(match_.features)));
    }
    if (match_.features.empty()) {
      match_.features = columns_.FeatureNames();
      match_.dropped = columns_.DroppedNames();
    }
    if (match_.label.empty()) match_.label = columns_.NameOf(columns_.label);
    courses_.assign(width, Course());
    rows_of_file_ = 0;
    if (header) ++next;
    row_.resize(static_cast<size_t>(columns_.features));
    for (; next < lines.size(); ++next) {
      DFL_RETURN_IF_ERROR(ReadRow(lines[next].text, path, lines[next].number));
    }
    return absl::OkStatus();
  }

  absl::Status Split(absl::string_view line, const std::string& path,
                     int64_t number) {
    const char* const wrong =
        SplitCsvLine(line, spec_.delimiter, &scratch_, &fields_);
    if (wrong == nullptr) return absl::OkStatus();
    return WrongContent(
        path, AtColumn(number, static_cast<int64_t>(fields_.size())),
        absl::StrCat("the field ", wrong), "\"quoted\" fields within one line");
  }

  // "line 3, column 2 ('age')".
  std::string PlaceOf(int64_t line, size_t i) const {
    const std::string name = columns_.NameOf(i);
    return absl::StrCat(
        AtColumn(line, static_cast<int64_t>(i) + 1),
        name.empty() ? "" : absl::StrCat(" (", Quoted(name), ")"));
  }

  absl::Status ReadRow(absl::string_view text, const std::string& path,
                       int64_t line) {
    DFL_RETURN_IF_ERROR(Split(text, path, line));
    if (fields_.size() != width_) {
      return WrongContent(path, AtLine(line),
                          absl::StrCat(fields_.size(), " fields"),
                          absl::StrCat(width_, ", as in the first line"));
    }
    ++rows_of_file_;
    bool drop = false;
    for (size_t i = 0; i < width_; ++i) {
      const int64_t feature = columns_.feature_of[i];
      if (feature == CsvColumns::kNone) continue;
      float& value = row_[static_cast<size_t>(feature)];
      if (IsMissing(fields_[i])) {
        if (spec_.missing == Missing::kRefuse) {
          return WrongContent(
              path, PlaceOf(line, i),
              absl::StrCat("value ", Quoted(fields_[i]), " is missing"),
              kMissingCure);
        }
        drop = spec_.missing == Missing::kDrop;
        value = std::numeric_limits<float>::quiet_NaN();
        continue;
      }
      const char* const wrong = ParseValue(fields_[i], &value);
      if (wrong != nullptr) {
        return WrongContent(
            path, PlaceOf(line, i),
            absl::StrCat("value ", Quoted(fields_[i]), " ", wrong),
            AllowedFor(i));
      }
      Follow(i, static_cast<double>(value));
    }
    DFL_ASSIGN_OR_RETURN(const bool answered,
                         ReadAnswer(path, line, /*drop=*/drop));
    if (!answered) {
      ++columns_of_set_.dropped_rows;
      return absl::OkStatus();
    }
    features_.insert(features_.end(), row_.begin(), row_.end());
    if (features_.size() > spec_.max_bytes / sizeof(float)) {
      return WrongContent(
          path, AtLine(line), "this row is too much",
          absl::StrCat("at most data.max_bytes = ", spec_.max_bytes));
    }
    ++rows_;
    return absl::OkStatus();
  }

  // The row's label or target; false if the row is to be dropped.
  absl::StatusOr<bool> ReadAnswer(const std::string& path, int64_t line,
                                  bool drop) {
    const size_t i = columns_.label;
    const absl::string_view field = fields_[i];
    const bool classifies = spec_.task == Task::kClassification;
    if (IsMissing(field) && !(classifies && labels_.IsStated(field))) {
      if (spec_.missing == Missing::kDrop) return false;
      return WrongContent(
          path, PlaceOf(line, i),
          absl::StrCat("the ", classifies ? "label" : "target", " ",
                       Quoted(field), " is missing"),
          classifies ? "a label in every row; data.missing: drop leaves the "
                       "row out; data.label_values lists it if it is a class"
                     : "a number in every row; data.missing: drop leaves the "
                       "row out");
    }
    if (drop) return false;
    if (classifies) {
      DFL_RETURN_IF_ERROR(
          labels_.Add(field, path, [&] { return PlaceOf(line, i); }));
      return true;
    }
    float target;
    const char* const wrong = ParseValue(field, &target);
    if (wrong != nullptr) {
      return WrongContent(path, PlaceOf(line, i),
                          absl::StrCat("target ", Quoted(field), " ", wrong),
                          "a finite number; data.label_column names another "
                          "column");
    }
    answers_.targets.push_back(target);
    return true;
  }

  std::string AllowedFor(size_t i) const {
    const absl::string_view field = fields_[i];
    double number;
    std::string pointed(field);
    std::replace(pointed.begin(), pointed.end(), ',', '.');
    if (field.find(',') != absl::string_view::npos &&
        ParseNumber(pointed, &number)) {
      return "a finite number with a decimal point, 1.5 and not 1,5";
    }
    return absl::StrCat(
        "a finite number, True or False; words must be turned into numbers "
        "first, or left out: ",
        DropCure(columns_, i));
  }

  void Follow(size_t i, double value) {
    Course& course = courses_[i];
    if (rows_of_file_ > 1) {
      course.rises &= value > course.previous;
      course.counts &= value == course.previous + 1;
    }
    course.whole &= value == std::floor(value);
    course.previous = value;
  }

  // Tells of the first columns that look like row numbers.
  void Warn(const std::string& path) {
    constexpr int64_t kManyRows = 20;
    for (size_t i = 0; i < width_; ++i) {
      if (columns_.feature_of[i] == CsvColumns::kNone) continue;
      const Course& course = courses_[i];
      if (!course.rises || !course.whole || rows_of_file_ < 3) continue;
      const std::string name = columns_.NameOf(i);
      const bool nameless =
          !columns_.names.empty() && absl::StartsWith(name, kNameless);
      if (!nameless && rows_of_file_ < kManyRows) continue;
      if (!warned_.insert(columns_.feature_of[i]).second) continue;
      if (warned_.size() > kMostWarnings) continue;
      columns_of_set_.warnings.push_back(absl::StrCat(
          path, ": column ", i,
          nameless       ? " has no name and "
          : name.empty() ? " "
                         : absl::StrCat(" (", Quoted(name), ") "),
          course.counts ? "counts the rows" : "rises from row to row",
          nameless ? ", like the index that pandas writes" : "",
          "; it is taken as a feature; if it is none, ",
          DropCure(columns_, i)));
    }
  }

  const DataSpec& spec_;
  ColumnMatch match_;  // the spec's, or the first file's
  std::string scratch_;
  std::vector<absl::string_view> fields_;
  CsvColumns columns_;  // of the file that is read
  size_t width_ = 0;    // its columns
  int64_t rows_of_file_ = 0;
  std::vector<Course> courses_;  // [width_]
  std::set<int64_t> warned_;     // features
  std::vector<float> row_;       // [features]
  int64_t rows_ = 0;
  std::vector<float> features_;
  LabelCollector labels_;
  Dataset::Answers answers_;
  Dataset::Columns columns_of_set_;
};

}  // namespace

absl::StatusOr<Dataset> ReadCsv(const DataSpec& spec) {
  CsvReader reader(spec);
  for (const std::string& path : spec.paths) {
    DFL_RETURN_IF_ERROR(reader.ReadFile(path));
  }
  return reader.Finish();
}

}  // namespace data
}  // namespace dfl
