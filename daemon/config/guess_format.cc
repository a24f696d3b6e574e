#include "daemon/config/guess_format.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/byte_stream.h"
#include "daemon/data/csv.h"
#include "daemon/data/data_error.h"
#include "daemon/data/labels.h"
#include "daemon/data/npy_header.h"
#include "daemon/data/zip.h"

namespace dfl::config {
namespace {

namespace fs = std::filesystem;
using data::Format;

constexpr char kKnown[] =
    "CSV, LIBSVM, NumPy's npz and npy, MNIST's idx, CIFAR-10's binary version, "
    "and folders of PNG or JPEG pictures; convert other files to one of these";

// One file, or folder, and what it is.
struct Found {
  std::string path;
  Format format = Format::kCsv;
  // npy, idx: values in one row; 0: the array has one dimension.
  uint64_t width = 0;
  std::string start;  // of a text
};

absl::Status NoFormat(const std::string& path, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", found, "; allowed: ", kKnown));
}

// Whether a line is "label index:value ...".
bool IsSparse(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  double label;
  if (words.size() < 2 || !absl::SimpleAtod(words[0], &label)) return false;
  return std::all_of(words.begin() + 1, words.end(), [](absl::string_view w) {
    int64_t index;
    const size_t colon = w.find(':');
    return colon != absl::string_view::npos &&
           absl::SimpleAtoi(w.substr(0, colon), &index);
  });
}

bool IsText(absl::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u < 9 || (u > 13 && u < 32);
  });
}

// Lines of a text without the last, which may be cut, and without comments.
std::vector<absl::string_view> WholeLines(absl::string_view text, bool all) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (!all && lines.size() > 1) lines.pop_back();
  std::vector<absl::string_view> out;
  for (absl::string_view line : lines) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    out.push_back(line);
  }
  return out;
}

absl::StatusOr<Found> Look(const std::string& path) {
  Found found;
  found.path = path;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    found.format = Format::kImages;
    return found;
  }
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<data::ByteStream> stream,
                       data::ByteStream::Open(path));
  constexpr size_t kStart = size_t{64} << 10;
  std::string start(kStart, '\0');
  DFL_ASSIGN_OR_RETURN(const size_t size,
                       stream->Read(absl::MakeSpan(&start[0], kStart)));
  start.resize(size);
  if (size == 0) return NoFormat(path, "the file is empty");
  if (absl::StartsWith(start, "\x93NUMPY")) {
    found.format = Format::kNpy;
    DFL_ASSIGN_OR_RETURN(const std::unique_ptr<data::ByteStream> again,
                         data::ByteStream::Open(path));
    DFL_ASSIGN_OR_RETURN(const data::NpyHeader header,
                         data::ReadNpyHeader(again.get()));
    for (size_t i = 1; i < header.shape.size(); ++i) {
      found.width = std::max<uint64_t>(found.width, 1) * header.shape[i];
    }
    return found;
  }
  if (absl::StartsWith(start, "PK\x03\x04")) {
    found.format = Format::kNpz;
    return found;
  }
  if (absl::StartsWith(start, "\x89PNG") ||
      absl::StartsWith(start, "\xFF\xD8\xFF")) {
    return NoFormat(path,
                    "a single picture; give the folder that has a "
                    "subfolder for each class");
  }
  for (const auto& [magic, name] :
       std::map<std::string, std::string>{{"\x89HDF", "an HDF5 file"},
                                          {"PAR1", "a Parquet file"},
                                          {"ARROW1", "an Arrow file"},
                                          {"\x80\x04", "a Python pickle"},
                                          {"\x80\x05", "a Python pickle"},
                                          {"SQLite", "a SQLite database"}}) {
    if (absl::StartsWith(start, magic)) return NoFormat(path, name);
  }
  if (size >= 4 && start.substr(0, 3) == std::string("\0\0\x08", 3)) {
    found.format = Format::kIdx;
    found.width = start[3] == 1 ? 0 : 1;
    return found;
  }
  if (!IsText(start)) {
    constexpr uint64_t kCifarRow = 3073;
    if (size >= kCifarRow &&
        (stream->compressed() ||
         (size + stream->max_remaining()) % kCifarRow == 0)) {
      found.format = Format::kCifar10;
      return found;
    }
    return NoFormat(path, "binary data of an unknown kind");
  }
  found.start = std::move(start);
  const std::vector<absl::string_view> lines =
      WholeLines(found.start, size < kStart);
  if (lines.empty()) return NoFormat(path, "no lines of data");
  const bool sparse = std::any_of(lines.begin(), lines.end(), IsSparse);
  found.format = sparse ? Format::kLibsvm : Format::kCsv;
  return found;
}

// What separates the fields of most lines into the same number.
std::optional<char> DelimiterOf(absl::string_view text) {
  const std::vector<absl::string_view> lines =
      WholeLines(text, text.size() < (size_t{64} << 10));
  std::optional<char> best;
  size_t best_fields = 1;
  for (const char delimiter : {',', ';', '\t', '|', ' '}) {
    size_t fields_in_all = 0;
    bool alike = true;
    for (size_t i = 0; i < lines.size() && i < 32; ++i) {
      std::string scratch;
      std::vector<absl::string_view> fields;
      alike = data::SplitCsvLine(lines[i], delimiter, &scratch, &fields) ==
                  nullptr &&
              (i == 0 || fields.size() == fields_in_all);
      if (!alike) break;
      fields_in_all = fields.size();
    }
    if (!alike || fields_in_all <= best_fields) continue;
    best = delimiter;
    best_fields = fields_in_all;
  }
  return best;
}

// The label column by its name, or "-1".
std::string LabelColumnOf(absl::string_view text, char delimiter) {
  const std::vector<absl::string_view> lines = WholeLines(text, true);
  std::string scratch;
  std::vector<absl::string_view> fields;
  data::SplitCsvLine(lines[0], delimiter, &scratch, &fields);
  for (const absl::string_view name :
       {"label", "labels", "class", "target", "y", "outcome", "category",
        "species", "diagnosis"}) {
    for (const absl::string_view field : fields) {
      if (absl::EqualsIgnoreCase(field, name)) return std::string(field);
    }
  }
  return "-1";
}

absl::Status GuessText(const Found& first, DataSettings* settings,
                       std::vector<std::string>* remarks) {
  const std::optional<char> delimiter = DelimiterOf(first.start);
  if (!delimiter.has_value()) {
    return NoFormat(first.path,
                    "lines that no comma, semicolon, tab, bar or space splits "
                    "into the same number of fields");
  }
  settings->common.delimiter = *delimiter;
  settings->common.label_column = LabelColumnOf(first.start, *delimiter);
  remarks->push_back(
      settings->common.label_column == "-1"
          ? "the label is taken from the last column; data.label_column names "
            "another"
          : absl::StrCat("the label is taken from column \"",
                         settings->common.label_column, "\", by its name"));
  return absl::OkStatus();
}

// Names of two arrays that belong together, as people call them.
struct Pair {
  const char* features;
  const char* labels;
  const char* test_features;
  const char* test_labels;
};
constexpr Pair kPairs[] = {
    {"x_train", "y_train", "x_test", "y_test"},
    {"X_train", "y_train", "X_test", "y_test"},
    {"train_images", "train_labels", "test_images", "test_labels"},
    {"train_data", "train_labels", "test_data", "test_labels"},
    {"X", "y", "", ""},
    {"x", "y", "", ""},
    {"data", "target", "", ""},
    {"data", "labels", "", ""},
    {"data", "label", "", ""},
    {"images", "labels", "", ""},
    {"features", "labels", "", ""},
};

absl::Status GuessKeys(const std::string& path, DataSettings* settings,
                       std::vector<std::string>* remarks) {
  DFL_ASSIGN_OR_RETURN(const data::ZipArchive archive,
                       data::ZipArchive::Open(path));
  std::vector<std::string> names;
  for (const data::ZipArchive::Member& member : archive.members()) {
    if (absl::EndsWith(member.name, ".npy")) {
      names.push_back(member.name.substr(0, member.name.size() - 4));
    }
  }
  if (names.empty()) return NoFormat(path, "a zip archive without arrays");
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Pair& pair : kPairs) {
    if (!has(pair.features) || !has(pair.labels)) continue;
    settings->common.features_key = pair.features;
    settings->common.labels_key = pair.labels;
    if (*pair.test_features != '\0' && has(pair.test_features) &&
        has(pair.test_labels)) {
      settings->test_features_key = pair.test_features;
      settings->test_labels_key = pair.test_labels;
      if (settings->test_paths.empty()) settings->test_paths = {path};
    }
    return absl::OkStatus();
  }
  // By their shapes, where that leaves no choice.
  std::vector<std::string> features;
  std::vector<std::string> labels;
  for (const std::string& name : names) {
    DFL_ASSIGN_OR_RETURN(const std::unique_ptr<data::ByteStream> member,
                         archive.OpenMember(absl::StrCat(name, ".npy")));
    const absl::StatusOr<data::NpyHeader> header =
        data::ReadNpyHeader(member.get());
    if (!header.ok()) continue;
    (header->shape.size() >= 2 ? features : labels).push_back(name);
  }
  if (features.size() != 1 || labels.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the arrays ", data::SomeOf(names),
        ", and which are features and labels cannot be told; allowed: name "
        "them X and y, or write data.features_key and data.labels_key "
        "yourself"));
  }
  settings->common.features_key = features[0];
  settings->common.labels_key = labels[0];
  remarks->push_back(absl::StrCat("array ", features[0],
                                  " is taken as features and ", labels[0],
                                  " as labels, by their shapes"));
  return absl::OkStatus();
}

// A folder that has the sets, and not the classes, as its subfolders.
void SplitFolder(const std::string& folder, DataSettings* settings) {
  std::string train;
  std::string test;
  std::error_code error;
  for (const char* name : {"train", "training"}) {
    const std::string inner = absl::StrCat(folder, "/", name);
    if (fs::is_directory(inner, error)) train = inner;
  }
  for (const char* name : {"validation", "valid", "val", "testing", "test"}) {
    const std::string inner = absl::StrCat(folder, "/", name);
    if (fs::is_directory(inner, error)) test = inner;
  }
  settings->train_paths = {train.empty() ? folder : train};
  if (!train.empty() && !test.empty()) settings->test_paths = {test};
}

}  // namespace

bool IsTestName(const std::string& path) {
  const std::string name =
      absl::AsciiStrToLower(fs::path(path).filename().string());
  std::string word;
  for (size_t i = 0; i <= name.size(); ++i) {
    const bool inside =
        i < name.size() &&
        absl::ascii_isalnum(static_cast<unsigned char>(name[i]));
    if (inside) {
      word.push_back(name[i]);
      continue;
    }
    for (const char* known :
         {"test", "testing", "t10k", "val", "valid", "validation", "eval"}) {
      if (word == known) return true;
    }
    word.clear();
  }
  return false;
}

absl::Status GuessFormat(const std::vector<std::string>& paths,
                         DataSettings* settings,
                         std::vector<std::string>* remarks) {
  std::vector<Found> all;
  for (const std::string& path : paths) {
    std::error_code error;
    const std::string absolute = fs::absolute(path, error).string();
    DFL_ASSIGN_OR_RETURN(Found found, Look(error ? path : absolute));
    if (!all.empty() && all[0].format != found.format) {
      return absl::InvalidArgumentError(absl::StrCat(
          found.path, ": format ", data::FormatName(found.format), ", and ",
          all[0].path, " is ", data::FormatName(all[0].format),
          "; allowed: files of one format at a time"));
    }
    all.push_back(std::move(found));
  }
  settings->common.format = all[0].format;
  // Features before labels.
  std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return a.width > b.width;
  });
  const bool all_tests =
      std::all_of(all.begin(), all.end(),
                  [](const Found& f) { return IsTestName(f.path); });
  for (const Found& found : all) {
    const bool test = !all_tests && IsTestName(found.path);
    (test ? settings->test_paths : settings->train_paths).push_back(found.path);
  }
  switch (all[0].format) {
    case Format::kCsv:
      return GuessText(all[0], settings, remarks);
    case Format::kNpz:
      return GuessKeys(settings->train_paths[0], settings, remarks);
    case Format::kImages:
      if (all.size() == 1) SplitFolder(all[0].path, settings);
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

}  // namespace dfl::config
