// What the targets of data formats share: a spec that the first bytes of the
// input choose, and what holds of every data set.
#ifndef DFL_TESTS_FUZZ_DATA_FILE_H_
#define DFL_TESTS_FUZZ_DATA_FILE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/base/check.h"
#include "daemon/data/data_spec.h"
#include "daemon/data/dataset.h"
#include "daemon/data/load.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {

// What a data set may take in memory here.
inline constexpr uint64_t kMostDataBytes = uint64_t{1} << 20;
// Whatever a file holds: of an error, and of warnings about its columns.
inline constexpr size_t kMostErrorBytes = size_t{32} << 10;
inline constexpr size_t kMostWarnings = 8;

// A spec of `format`, without paths. Takes one byte.
inline data::DataSpec SpecOf(data::Format format, Pieces& pieces) {
  const uint8_t choice = pieces.Byte();
  data::DataSpec spec;
  spec.format = format;
  spec.max_bytes = kMostDataBytes;
  spec.missing = static_cast<data::Missing>(choice & 3);
  spec.header = static_cast<data::Header>(choice >> 2 & 3);
  spec.layout = static_cast<data::Layout>((choice >> 4 & 3) % 3);
  const bool numbers =
      format == data::Format::kLibsvm || format == data::Format::kCsv ||
      format == data::Format::kNpz || format == data::Format::kNpy;
  if (numbers && (choice & 64) != 0) spec.task = data::Task::kRegression;
  spec.index_base = (choice & 128) != 0 ? 0 : 1;
  return spec;
}

inline void CheckLabels(const data::Dataset& dataset) {
  const auto classes = static_cast<size_t>(dataset.classes());
  DFL_CHECK(dataset.labels().size() == static_cast<size_t>(dataset.rows()));
  DFL_CHECK(dataset.class_names().size() == classes);
  for (const int64_t label : dataset.labels()) {
    DFL_CHECK(0 <= label && label < dataset.classes());
  }
}

// Reads the data set of `spec`, and checks what comes of it.
inline void CheckData(const data::DataSpec& spec) {
  const auto dataset = data::Load(spec);
  if (!dataset.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(dataset.status()) ||
              absl::IsDataLoss(dataset.status()));
    DFL_CHECK(dataset.status().message().size() <= kMostErrorBytes);
    return;
  }
  DFL_CHECK(dataset->rows() > 0 && dataset->row_size() > 0);
  DFL_CHECK(dataset->columns().warnings.size() <= kMostWarnings);
  int64_t product = 1;
  for (const int64_t extent : dataset->shape()) product *= extent;
  DFL_CHECK(product == dataset->row_size());
  const auto values =
      static_cast<size_t>(dataset->rows() * dataset->row_size());
  DFL_CHECK((dataset->has_bytes() ? dataset->bytes().size()
                                  : dataset->floats().size()) == values);
  DFL_CHECK(values * (dataset->has_bytes() ? 1 : sizeof(float)) <=
            kMostDataBytes);
  for (const float value : dataset->floats()) DFL_CHECK(std::isfinite(value));
  if (dataset->is_regression()) {
    for (const float value : dataset->targets()) {
      DFL_CHECK(std::isfinite(value));
    }
    DFL_CHECK(dataset->targets().size() ==
              static_cast<size_t>(dataset->rows()));
  } else {
    CheckLabels(*dataset);
  }
}

// A data set of one file: what is left of the input.
inline void CheckOneFile(data::Format format, absl::string_view bytes) {
  Pieces pieces(bytes);
  data::DataSpec spec = SpecOf(format, pieces);
  const MemoryFile file(pieces.Rest());
  spec.paths = {file.path()};
  CheckData(spec);
}

// A data set of two files: a part, and what is left of the input.
inline void CheckTwoFiles(data::Format format, absl::string_view bytes) {
  Pieces pieces(bytes);
  data::DataSpec spec = SpecOf(format, pieces);
  const MemoryFile first(pieces.Part());
  const MemoryFile second(pieces.Rest());
  spec.paths = {first.path(), second.path()};
  CheckData(spec);
}

}  // namespace dfl::fuzz

#endif  // DFL_TESTS_FUZZ_DATA_FILE_H_
