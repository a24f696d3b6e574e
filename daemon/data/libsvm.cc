// LIBSVM text: "label index:value index:value ...", sparse, indices from 1 or,
// as scikit-learn writes it, from 0.
// https://www.csie.ntu.edu.tw/~cjlin/libsvm
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/data_error.h"
#include "daemon/data/labels.h"
#include "daemon/data/missing.h"
#include "daemon/data/readers.h"
#include "daemon/data/spec_checks.h"
#include "daemon/data/text.h"

namespace dfl {
namespace data {
namespace {

struct Sparse {
  std::vector<uint64_t> row_begins = {0};
  std::vector<uint32_t> columns;  // from 0
  std::vector<float> values;
  int64_t features = 0;                                 // width so far
  int64_t least = std::numeric_limits<int64_t>::max();  // index
  std::string widest_path;
  int64_t widest_line = 0;
};

// Takes the next word off `*rest`; `*column` is where it starts, from 1.
absl::string_view NextWord(absl::string_view line, absl::string_view* rest,
                           int64_t* column) {
  *rest = absl::StripLeadingAsciiWhitespace(*rest);
  *column = rest->data() - line.data() + 1;
  size_t length = 0;
  while (length < rest->size() && !absl::ascii_isspace((*rest)[length])) {
    ++length;
  }
  const absl::string_view word = rest->substr(0, length);
  rest->remove_prefix(length);
  return word;
}

class LibsvmReader {
 public:
  explicit LibsvmReader(const DataSpec& spec) : spec_(spec), labels_(spec) {}

  absl::Status ReadFile(const std::string& path) {
    DFL_ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
    const uint64_t rows_before = sparse_.row_begins.size();
    absl::string_view line;
    while (true) {
      DFL_ASSIGN_OR_RETURN(const bool more, reader.Next(&line));
      if (!more) break;
      // A comment may have a line of its own.
      line = line.substr(0, line.find('#'));
      if (absl::StripAsciiWhitespace(line).empty()) continue;
      DFL_RETURN_IF_ERROR(ReadLine(line, path, reader.line_number()));
    }
    if (sparse_.row_begins.size() == rows_before && dropped_ == 0) {
      return WrongContent(path, AtLine(1), "no rows", "at least one");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Dataset> Finish() {
    const std::string& last = spec_.paths.back();
    const size_t rows = sparse_.row_begins.size() - 1;
    DFL_RETURN_IF_ERROR(CheckRows(spec_, static_cast<int64_t>(rows) + dropped_,
                                  last, "all files together"));
    if (rows == 0) {
      return WrongContent(last, "all rows",
                          "every row has a missing value and is dropped",
                          "data.missing: mean or zero");
    }
    const int64_t d = spec_.features > 0 ? spec_.features : sparse_.features;
    if (d == 0) {
      return WrongContent(last, AtLine(1), "no row has a feature",
                          "index:value after the label; data.features is the "
                          "width of rows that are all zero");
    }
    const std::string& place_path =
        sparse_.widest_path.empty() ? last : sparse_.widest_path;
    const uint64_t extents[] = {rows, static_cast<uint64_t>(d)};
    DFL_RETURN_IF_ERROR(CheckedBytes(spec_, extents, sizeof(float), place_path,
                                     AtLine(sparse_.widest_line))
                            .status());
    DFL_ASSIGN_OR_RETURN(
        std::vector<int64_t> shape,
        ResolveShape(spec_, {d}, place_path, AtLine(sparse_.widest_line)));
    if (spec_.task == Task::kClassification) {
      DFL_ASSIGN_OR_RETURN(answers_, labels_.Finish());
    }
    Dataset::Columns columns;
    columns.width_is_at_least = spec_.features == 0;
    columns.dropped_rows = dropped_;
    if (spec_.features > 0 && spec_.index_base == 1 &&
        sparse_.features == spec_.features - 1) {
      columns.warnings.push_back(absl::StrCat(
          place_path, ": indices go from ", sparse_.least, " to ",
          sparse_.features, " where data.features is ", spec_.features,
          "; if the file counts from 0, set data.index_base: 0, or all "
          "features are shifted by one"));
    }
    std::vector<float> dense(rows * static_cast<size_t>(d), 0.0f);
    for (size_t row = 0; row < rows; ++row) {
      float* const out = dense.data() + row * static_cast<size_t>(d);
      for (uint64_t k = sparse_.row_begins[row];
           k < sparse_.row_begins[row + 1]; ++k) {
        out[sparse_.columns[k]] = sparse_.values[k];
      }
    }
    if (spec_.missing == Missing::kMean || spec_.missing == Missing::kZero) {
      DFL_RETURN_IF_ERROR(
          FillMissing(spec_, d, last, absl::MakeSpan(dense), &columns));
    }
    return Dataset(std::move(shape), std::move(dense), std::move(answers_),
                   std::move(columns));
  }

 private:
  absl::Status ReadLine(absl::string_view line, const std::string& path,
                        int64_t number) {
    absl::string_view rest = line;
    int64_t column;
    const absl::string_view label = NextWord(line, &rest, &column);
    const int64_t label_column = column;
    const size_t begin = sparse_.columns.size();
    int64_t previous = spec_.index_base - 1;
    bool drop = false;
    while (true) {
      const absl::string_view word = NextWord(line, &rest, &column);
      if (word.empty()) break;
      const size_t colon = word.find(':');
      int64_t index;
      if (colon == absl::string_view::npos ||
          !absl::SimpleAtoi(word.substr(0, colon), &index)) {
        return WrongContent(path, AtColumn(number, column), Quoted(word),
                            "index:value, e.g. 3:0.5");
      }
      DFL_RETURN_IF_ERROR(
          CheckIndex(index, previous, path, AtColumn(number, column)));
      float value;
      const absl::string_view spelling = word.substr(colon + 1);
      const std::string place =
          AtColumn(number, column + static_cast<int64_t>(colon) + 1);
      if (IsMissing(spelling)) {
        if (spec_.missing == Missing::kRefuse) {
          return WrongContent(
              path, place,
              absl::StrCat("value ", Quoted(spelling), " is missing"),
              kMissingCure);
        }
        drop |= spec_.missing == Missing::kDrop;
        value = std::numeric_limits<float>::quiet_NaN();
      } else if (const char* const wrong = ParseFiniteFloat(spelling, &value);
                 wrong != nullptr) {
        return WrongContent(
            path, place, absl::StrCat("value ", Quoted(spelling), " ", wrong),
            "a finite number");
      }
      sparse_.columns.push_back(
          static_cast<uint32_t>(index - spec_.index_base));
      sparse_.values.push_back(value);
      sparse_.least = std::min(sparse_.least, index);
      previous = index;
    }
    const int64_t width = previous - spec_.index_base + 1;
    if (width > sparse_.features) {
      sparse_.features = width;
      sparse_.widest_path = path;
      sparse_.widest_line = number;
    }
    if (drop) {
      sparse_.columns.resize(begin);
      sparse_.values.resize(begin);
      ++dropped_;
      return absl::OkStatus();
    }
    DFL_RETURN_IF_ERROR(ReadLabel(label, path, number, label_column));
    sparse_.row_begins.push_back(sparse_.columns.size());
    // Rows count, too: a line that is only a label compresses to nothing.
    const uint64_t bytes =
        sparse_.columns.size() * (sizeof(uint32_t) + sizeof(float)) +
        sparse_.row_begins.size() * (sizeof(uint64_t) + sizeof(int64_t));
    if (bytes > spec_.max_bytes) {
      return WrongContent(
          path, AtLine(number), "this row is too much",
          absl::StrCat("at most data.max_bytes = ", spec_.max_bytes));
    }
    return absl::OkStatus();
  }

  // The next index of a row, after `previous`.
  absl::Status CheckIndex(int64_t index, int64_t previous,
                          const std::string& path,
                          const std::string& place) const {
    const int64_t base = spec_.index_base;
    if (index == 0 && base == 1) {
      return WrongContent(path, place, "index 0",
                          "indices from 1; data.index_base: 0 reads files that "
                          "count from 0, as scikit-learn writes them");
    }
    const int64_t most =
        spec_.features > 0 ? spec_.features + base - 1 : int64_t{UINT32_MAX};
    if (index > previous && index <= most) return absl::OkStatus();
    return WrongContent(
        path, place, absl::StrCat("index ", index),
        absl::StrCat(previous + 1, " to ", most, " (from ", base,
                     ", increasing within a row",
                     spec_.features > 0
                         ? absl::StrCat("; data.features is ", spec_.features)
                         : "",
                     ")"));
  }

  absl::Status ReadLabel(absl::string_view label, const std::string& path,
                         int64_t line, int64_t column) {
    double number;
    if (!ParseNumber(label, &number)) {
      return WrongContent(path, AtColumn(line, column),
                          absl::StrCat("label ", Quoted(label)),
                          "a number, e.g. -1 or 3");
    }
    if (spec_.task == Task::kClassification) {
      if (number != static_cast<double>(static_cast<int64_t>(
                        number > -9e15 && number < 9e15 ? number : 0))) {
        return WrongContent(path, AtColumn(line, column),
                            absl::StrCat("label ", Quoted(label)),
                            "an integer (or set task to regression)");
      }
      return labels_.Add(label, path, [&] { return AtColumn(line, column); });
    }
    float target;
    const char* const wrong = ParseFiniteFloat(label, &target);
    if (wrong != nullptr) {
      return WrongContent(path, AtColumn(line, column),
                          absl::StrCat("target ", Quoted(label), " ", wrong),
                          "a finite number");
    }
    answers_.targets.push_back(target);
    return absl::OkStatus();
  }

  const DataSpec& spec_;
  Sparse sparse_;
  LabelCollector labels_;
  Dataset::Answers answers_;
  int64_t dropped_ = 0;
};

}  // namespace

absl::StatusOr<Dataset> ReadLibsvm(const DataSpec& spec) {
  LibsvmReader reader(spec);
  for (const std::string& path : spec.paths) {
    DFL_RETURN_IF_ERROR(reader.ReadFile(path));
  }
  return reader.Finish();
}

}  // namespace data
}  // namespace dfl
