#include "daemon/data/load.h"

#include <cmath>
#include <new>
#include <set>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/contract/labels.h"
#include "daemon/data/data_error.h"
#include "daemon/data/labels.h"
#include "daemon/data/readers.h"
#include "daemon/data/spec_checks.h"

namespace dfl {
namespace data {
namespace {

struct FormatEntry {
  absl::string_view name;
  Format format;
};
constexpr FormatEntry kFormats[] = {
    {"idx", Format::kIdx},       {"cifar10", Format::kCifar10},
    {"libsvm", Format::kLibsvm}, {"csv", Format::kCsv},
    {"npz", Format::kNpz},       {"npy", Format::kNpy},
    {"images", Format::kImages}};

absl::Status Refused(absl::string_view field, absl::string_view found,
                     absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("data ", field, ": ", found, "; allowed: ", allowed));
}

absl::StatusOr<Dataset> Dispatch(const DataSpec& spec) {
  switch (spec.format) {
    case Format::kIdx:
      return ReadIdx(spec);
    case Format::kCifar10:
      return ReadCifar10(spec);
    case Format::kLibsvm:
      return ReadLibsvm(spec);
    case Format::kCsv:
      return ReadCsv(spec);
    case Format::kNpz:
      return ReadNpz(spec);
    case Format::kNpy:
      return ReadNpy(spec);
    case Format::kImages:
      return ReadImages(spec);
  }
  DFL_CHECK(false);
  return absl::InternalError("unreachable");
}

absl::Status ValidateLabels(const DataSpec& spec) {
  const bool no_numbers = spec.format == Format::kIdx ||
                          spec.format == Format::kCifar10 ||
                          spec.format == Format::kImages;
  if (spec.task == Task::kRegression) {
    if (no_numbers) {
      return Refused(
          "task",
          absl::StrCat("regression with format ", FormatName(spec.format)),
          "classification; regression reads libsvm, csv, npz, npy");
    }
    if (spec.classes != 0 || !spec.label_values.empty()) {
      return Refused("classes", "given for regression",
                     "neither classes nor label_values");
    }
  }
  if (spec.classes < 0 || spec.classes > kMaxClasses) {
    return Refused("classes", absl::StrCat(spec.classes),
                   absl::StrCat("0 (find out) to ", kMaxClasses));
  }
  if (spec.label_values.empty()) return absl::OkStatus();
  if (spec.format == Format::kCifar10) {
    return Refused("label_values", "given for format cifar10",
                   "no label_values; its labels are always 0 to 9");
  }
  if (spec.classes != 0 &&
      static_cast<size_t>(spec.classes) != spec.label_values.size()) {
    return Refused("label_values",
                   absl::StrCat(spec.label_values.size(), " values"),
                   absl::StrCat("as many as classes = ", spec.classes));
  }
  if (spec.label_values.size() > static_cast<size_t>(kMaxClasses)) {
    return Refused("label_values",
                   absl::StrCat(spec.label_values.size(), " values"),
                   absl::StrCat("at most ", kMaxClasses));
  }
  std::set<std::string> seen;
  for (const std::string& spelling : spec.label_values) {
    if (spelling.empty() ||
        !seen.insert(core::CanonicalLabel(spelling)).second) {
      return Refused("label_values", Quoted(spelling),
                     "each class once, none empty");
    }
  }
  return absl::OkStatus();
}

// What concerns features.
absl::Status ValidateValues(const DataSpec& spec) {
  if (spec.divide != 0 && !core::IsDivisor(spec.divide)) {
    return Refused("divide", absl::StrCat(spec.divide),
                   absl::StrCat("a ", core::kDivisors,
                                ", or 0: bytes by 255, others not"));
  }
  if (spec.index_base != 0 && spec.index_base != 1) {
    return Refused("index_base", absl::StrCat(spec.index_base), "0 or 1");
  }
  if (spec.channels != 0 && spec.channels != 1 && spec.channels != 3) {
    return Refused("channels", absl::StrCat(spec.channels),
                   "1 (grey), 3 (coloured), or 0 (as the pictures are)");
  }
  constexpr int64_t kMaxSide = 16384;
  const bool sides =
      spec.resize.empty() ||
      (spec.resize.size() == 2 && spec.resize[0] >= 1 && spec.resize[1] >= 1 &&
       spec.resize[0] <= kMaxSide && spec.resize[1] <= kMaxSide);
  if (!sides) {
    return Refused("resize",
                   absl::StrCat("[", absl::StrJoin(spec.resize, ", "), "]"),
                   absl::StrCat("[height, width], each 1 to ", kMaxSide));
  }
  std::set<std::string> names;
  for (const std::string& name : spec.feature_names) {
    if (name.empty() || !names.insert(name).second) {
      return Refused("feature_names", Quoted(name),
                     "each name once, none empty");
    }
  }
  return absl::OkStatus();
}

// The data set with the names that the settings give.
absl::StatusOr<Dataset> WithFeatureNames(const DataSpec& spec, Dataset data) {
  if (spec.feature_names.empty()) return data;
  if (spec.feature_names.size() != static_cast<size_t>(data.row_size())) {
    return WrongContent(spec.paths[0], "a row",
                        absl::StrCat(data.row_size(), " features"),
                        absl::StrCat("as many as data.feature_names lists, ",
                                     spec.feature_names.size()));
  }
  if (!data.columns().names.empty() &&
      data.columns().names != spec.feature_names) {
    return WrongContent(
        spec.paths[0], "the header",
        absl::StrCat("it names the features ", SomeOf(data.columns().names)),
        "files without names where data.feature_names is given; remove it, or "
        "set data.header: skip");
  }
  Dataset::Columns columns = data.columns();
  columns.names = spec.feature_names;
  return data.With(data.answers(), std::move(columns));
}

DataSpec MnistSpec(absl::string_view folder, absl::string_view prefix) {
  DataSpec spec;
  spec.format = Format::kIdx;
  spec.paths = {absl::StrCat(folder, "/", prefix, "-images-idx3-ubyte.gz"),
                absl::StrCat(folder, "/", prefix, "-labels-idx1-ubyte.gz")};
  spec.classes = 10;
  return spec;
}

}  // namespace

absl::StatusOr<Format> ParseFormat(absl::string_view name) {
  for (const FormatEntry& entry : kFormats) {
    if (entry.name == name) return entry.format;
  }
  return Refused("format", Quoted(name),
                 "idx, cifar10, libsvm, csv, npz, npy, images");
}

absl::string_view FormatName(Format format) {
  for (const FormatEntry& entry : kFormats) {
    if (entry.format == format) return entry.name;
  }
  return "unknown";
}

absl::StatusOr<Header> ParseHeader(absl::string_view name) {
  if (name == "auto") return Header::kAuto;
  if (name == "yes") return Header::kYes;
  if (name == "no") return Header::kNo;
  if (name == "skip") return Header::kSkip;
  return Refused("header", Quoted(name), "auto, yes, no, skip");
}

absl::Status ValidateSpec(const DataSpec& spec) {
  constexpr size_t kMany = 10000;
  const bool pair = spec.format == Format::kIdx || spec.format == Format::kNpy;
  DFL_RETURN_IF_ERROR(CheckPaths(spec, pair ? 2 : 1,
                                 pair                          ? 2
                                 : spec.format == Format::kNpz ? 1
                                                               : kMany));
  DFL_RETURN_IF_ERROR(ValidateLabels(spec));
  DFL_RETURN_IF_ERROR(ValidateValues(spec));
  if (spec.features < 0) {
    return Refused("features", absl::StrCat(spec.features),
                   "0 (as the file says) or more");
  }
  if (spec.rows < 0) {
    return Refused("rows", absl::StrCat(spec.rows), "0 (any) or more");
  }
  for (const int64_t extent : spec.shape) {
    if (extent < 1) {
      return Refused("shape",
                     absl::StrCat("(", absl::StrJoin(spec.shape, ", "), ")"),
                     "every extent at least 1");
    }
  }
  if (spec.format == Format::kCsv) {
    const char d = spec.delimiter;
    if (d == '"' || d == '\n' || d == '\r' || d == '\0' || d == '.' ||
        d == '+' || d == '-' || (d >= '0' && d <= '9')) {
      return Refused("delimiter", Quoted(absl::string_view(&d, 1)),
                     "a character that no number or quote holds: , ; tab |");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Dataset> Load(const DataSpec& spec) {
  DFL_RETURN_IF_ERROR(ValidateSpec(spec));
  try {
    DFL_ASSIGN_OR_RETURN(Dataset data, Dispatch(spec));
    return WithFeatureNames(spec, std::move(data));
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(spec.paths[0],
                   ": not enough memory for this data set; give the node a "
                   "smaller file, or more memory"));
}

DataSpec MnistTrainingSpec(absl::string_view folder) {
  return MnistSpec(folder, "train");
}

DataSpec MnistTestSpec(absl::string_view folder) {
  return MnistSpec(folder, "t10k");
}

}  // namespace data
}  // namespace dfl
