#include "daemon/data/csv.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/data_error.h"
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

class CsvReader {
 public:
  explicit CsvReader(const DataSpec& spec) : spec_(spec), labels_(spec) {}

  absl::Status ReadFile(const std::string& path) {
    DFL_ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
    const int64_t rows_before = rows_;
    bool first = true;
    while (true) {
      absl::string_view line;
      DFL_ASSIGN_OR_RETURN(const bool more, reader.Next(&line));
      if (!more) break;
      const int64_t number = reader.line_number();
      const bool skip = first && spec_.header == Header::kSkip;
      const bool was_first = std::exchange(first, false);
      if (skip) continue;
      const char* const wrong =
          SplitCsvLine(line, spec_.delimiter, &scratch_, &fields_);
      if (wrong != nullptr) {
        return WrongContent(
            path, AtColumn(number, static_cast<int64_t>(fields_.size())),
            absl::StrCat("the field ", wrong),
            "\"quoted\" fields within one line");
      }
      if (was_first) {
        DFL_ASSIGN_OR_RETURN(const bool header, ReadFirstLine(path, number));
        if (header) continue;
      }
      if (width_ == 0) DFL_RETURN_IF_ERROR(FixColumns({}, path, number));
      DFL_RETURN_IF_ERROR(ReadRow(path, number));
    }
    if (rows_ == rows_before) {
      return WrongContent(path, AtLine(reader.line_number() + 1), "no rows",
                          "at least one");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Dataset> Finish() {
    const std::string& last = spec_.paths.back();
    DFL_RETURN_IF_ERROR(CheckRows(spec_, rows_, last, "all files together"));
    const int64_t d = static_cast<int64_t>(features_.size()) / rows_;
    DFL_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                         ResolveShape(spec_, {d}, last, AtLine(1)));
    if (spec_.task == Task::kClassification) {
      DFL_ASSIGN_OR_RETURN(answers_, labels_.Finish());
    }
    return Dataset(std::move(shape), std::move(features_), std::move(answers_));
  }

 private:
  // fields_ is a file's first line. True if it is a header.
  absl::StatusOr<bool> ReadFirstLine(const std::string& path, int64_t line) {
    bool header = spec_.header == Header::kYes;
    if (spec_.header == Header::kAuto) {
      // By index, the label and the dropped columns may hold text anyway; by
      // name, there must be a header.
      header = NamesColumns();
      for (size_t i = 0; i < fields_.size() && !header; ++i) {
        double number;
        header = !ParseNumber(fields_[i], &number) && !IsIndexed(i);
      }
    }
    if (!header) return false;
    std::vector<std::string> names(fields_.begin(), fields_.end());
    if (width_ == 0) {
      DFL_RETURN_IF_ERROR(FixColumns(std::move(names), path, line));
    } else if (names != names_) {
      return WrongContent(path, AtLine(line),
                          "the header differs from the first file's",
                          absl::StrCat("the columns of ", spec_.paths[0]));
    }
    return true;
  }

  // The index that `column` spells, or false.
  static bool ParseIndex(const std::string& column, int64_t* index) {
    return absl::SimpleAtoi(column, index);
  }
  bool NamesColumns() const {
    int64_t index;
    if (!ParseIndex(spec_.label_column, &index)) return true;
    for (const std::string& column : spec_.drop_columns) {
      if (!ParseIndex(column, &index)) return true;
    }
    return false;
  }
  bool IsIndexed(size_t i) const {
    const int64_t width = static_cast<int64_t>(fields_.size());
    const auto is = [&](const std::string& column) {
      int64_t index;
      return ParseIndex(column, &index) &&
             (index < 0 ? index + width : index) == static_cast<int64_t>(i);
    };
    return is(spec_.label_column) || std::any_of(spec_.drop_columns.begin(),
                                                 spec_.drop_columns.end(), is);
  }

  // Settles what each column is for, from the first line seen.
  absl::Status FixColumns(std::vector<std::string> names,
                          const std::string& path, int64_t line) {
    names_ = std::move(names);
    width_ = fields_.size();
    is_feature_.assign(width_, true);
    DFL_ASSIGN_OR_RETURN(label_, FindColumn(spec_.label_column, path, line));
    is_feature_[label_] = false;
    for (const std::string& column : spec_.drop_columns) {
      DFL_ASSIGN_OR_RETURN(const size_t i, FindColumn(column, path, line));
      if (i == label_) {
        return WrongContent(path, AtLine(line),
                            absl::StrCat("column ", Quoted(column),
                                         " is the label and dropped"),
                            "one of the two");
      }
      is_feature_[i] = false;
    }
    if (std::count(is_feature_.begin(), is_feature_.end(), true) == 0) {
      return WrongContent(
          path, AtLine(line),
          absl::StrCat(width_, " fields, none left as a feature"),
          absl::StrCat("at least one besides the label; is the delimiter ",
                       Quoted(absl::string_view(&spec_.delimiter, 1)), "?"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> FindColumn(const std::string& column,
                                    const std::string& path,
                                    int64_t line) const {
    const auto found = std::find(names_.begin(), names_.end(), column);
    if (found != names_.end()) {
      return static_cast<size_t>(found - names_.begin());
    }
    const int64_t width = static_cast<int64_t>(width_);
    int64_t index;
    if (ParseIndex(column, &index) && index >= -width && index < width) {
      return static_cast<size_t>(index < 0 ? index + width : index);
    }
    std::string allowed =
        absl::StrCat("an index from ", -width, " to ", width - 1);
    if (names_.empty()) {
      absl::StrAppend(&allowed, " (no header was read)");
    } else {
      absl::StrAppend(&allowed, " or a name:");
      for (size_t i = 0; i < names_.size() && i < 20; ++i) {
        absl::StrAppend(&allowed, " ", Quoted(names_[i]));
      }
      if (names_.size() > 20) absl::StrAppend(&allowed, " ...");
    }
    return WrongContent(path, AtLine(line),
                        absl::StrCat("there is no column ", Quoted(column)),
                        allowed);
  }

  std::string ColumnName(size_t i) const {
    return names_.empty() ? std::string()
                          : absl::StrCat(" (", Quoted(names_[i]), ")");
  }

  absl::Status ReadRow(const std::string& path, int64_t line) {
    if (fields_.size() != width_) {
      return WrongContent(path, AtLine(line),
                          absl::StrCat(fields_.size(), " fields"),
                          absl::StrCat(width_, ", as in the first line"));
    }
    for (size_t i = 0; i < width_; ++i) {
      const int64_t column = static_cast<int64_t>(i) + 1;
      const bool is_label = i == label_;
      if (is_label && spec_.task == Task::kClassification) {
        DFL_RETURN_IF_ERROR(labels_.Add(fields_[i], path, line, column));
        continue;
      }
      if (!is_label && !is_feature_[i]) continue;
      float value;
      const char* const wrong = ParseFiniteFloat(fields_[i], &value);
      if (wrong != nullptr) {
        return WrongContent(
            path, absl::StrCat(AtColumn(line, column), ColumnName(i)),
            absl::StrCat(is_label ? "target " : "value ", Quoted(fields_[i]),
                         " ", wrong),
            "a finite number (drop_columns leaves columns out)");
      }
      (is_label ? answers_.targets : features_).push_back(value);
    }
    if (features_.size() > spec_.max_bytes / sizeof(float)) {
      return WrongContent(
          path, AtLine(line), "this row is too much",
          absl::StrCat("at most max_bytes = ", spec_.max_bytes));
    }
    ++rows_;
    return absl::OkStatus();
  }

  const DataSpec& spec_;
  std::string scratch_;
  std::vector<absl::string_view> fields_;
  std::vector<std::string> names_;  // empty without a header
  size_t width_ = 0;                // fields in a line; 0: no line seen
  size_t label_ = 0;
  std::vector<bool> is_feature_;
  int64_t rows_ = 0;
  std::vector<float> features_;
  LabelCollector labels_;
  Dataset::Answers answers_;
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
