#include "daemon/config/data_table.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/config/setting_makers.h"
#include "daemon/config/values.h"
#include "daemon/core/contract/data_contract.h"

namespace dfl::config {
namespace {

constexpr int64_t kMany = std::numeric_limits<int64_t>::max();

absl::Status AnyText(absl::string_view) { return absl::OkStatus(); }

absl::Status NotEmpty(absl::string_view text) {
  return text.empty() ? NotAllowed() : absl::OkStatus();
}

Setting DivideSetting() {
  Setting divide =
      Named("data.divide", "", "a number above 0, or auto",
            "What raw values are divided by before all else. auto: bytes (idx, "
            "cifar10, images, npz and npy of unsigned bytes) by 255, all else "
            "by 1. All nodes of a run divide by the same.");
  divide.set = [](const RawValue& value, NodeSettings& settings) {
    if (value.is_list) return NotAllowed();
    if (value.text == "auto") {
      settings.data.common.divide = 0;
      return absl::OkStatus();
    }
    const std::optional<double> number = ReadNumber(value.text);
    if (!number.has_value()) return NotAllowed("that is no number");
    if (*number <= 0) return NotAllowed();
    if (!core::IsDivisor(*number)) return NotAllowed("float32 cannot hold it");
    settings.data.common.divide = *number;
    return absl::OkStatus();
  };
  divide.get = [](const NodeSettings& settings) -> std::string {
    const double number = settings.data.common.divide;
    return number == 0 ? "auto" : WriteNumber(number);
  };
  return divide;
}

}  // namespace

std::vector<Setting> DataTable() {
  using data::Format;
  using data::Header;
  using data::Layout;
  using data::Missing;
  using data::Task;
  std::vector<Setting> table;
  table.push_back(Choice<Format>(
      "data.format",
      [](NodeSettings& s) -> Format& { return s.data.common.format; },
      {{"idx", Format::kIdx},
       {"cifar10", Format::kCifar10},
       {"libsvm", Format::kLibsvm},
       {"csv", Format::kCsv},
       {"npz", Format::kNpz},
       {"npy", Format::kNpy},
       {"images", Format::kImages}},
      "What the data files are. idx (MNIST's) and npy take two paths, first "
      "the features, then the labels; npz takes one; images takes folders that "
      "hold a subfolder of PNG or JPEG files for each class; the others take "
      "one or more, which are joined. Files may be gzipped. dfld data FILE... "
      "guesses this section."));
  table.push_back(Choice<Task>(
      "data.task", [](NodeSettings& s) -> Task& { return s.data.common.task; },
      {{"classification", Task::kClassification},
       {"regression", Task::kRegression}},
      "Whether labels are classes or numbers. Regression reads libsvm, csv, "
      "npz and npy."));
  table.push_back(Integer(
      "data.classes",
      [](NodeSettings& s) -> int64_t& { return s.data.common.classes; }, 0,
      65536, "",
      "Number of classes; 0: as many as the files show. More are refused. "
      "Integers below it stand for themselves. A node may lack classes: the "
      "run says which there are."));
  table.push_back(TextList(
      "data.label_values",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.data.common.label_values;
      },
      "labels as the files spell them", AnyText,
      "How class 0, 1, ... are spelt; another label is refused. Empty: the run "
      "numbers the labels that its nodes have, integers as numbers, then words "
      "in order."));
  table.push_back(Integer(
      "data.features",
      [](NodeSettings& s) -> int64_t& { return s.data.common.features; }, 0,
      kMany, "",
      "Numbers in one row; 0: as the files say. libsvm needs it where the last "
      "features may be absent."));
  table.push_back(IntegerList(
      "data.shape",
      [](NodeSettings& s) -> std::vector<int64_t>& {
        return s.data.common.shape;
      },
      "integers of at least 1, such as [1, 28, 28]",
      "Shape of one row; empty: as the format says."));
  table.push_back(TextList(
      "data.feature_names",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.data.common.feature_names;
      },
      "a name for each feature, in order", NotEmpty,
      "Names of the features, where the files have none. Nodes match columns "
      "by name."));
  table.push_back(DivideSetting());
  table.push_back(Choice<Missing>(
      "data.missing",
      [](NodeSettings& s) -> Missing& { return s.data.common.missing; },
      {{"refuse", Missing::kRefuse},
       {"mean", Missing::kMean},
       {"zero", Missing::kZero},
       {"drop", Missing::kDrop}},
      "csv, libsvm, npz, npy: what a missing value becomes (an empty field, "
      "NA, NaN, ?, null). mean: the mean of its feature in the training files; "
      "drop: its row is left out."));
  table.push_back(Text(
      "data.label_column",
      [](NodeSettings& s) -> std::string& {
        return s.data.common.label_column;
      },
      "a column's name, or its index from 0; -1: the last", NotEmpty,
      "csv: the column that holds the label. An integer is always an index."));
  table.push_back(TextList(
      "data.drop_columns",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.data.common.drop_columns;
      },
      "names or indices of columns", NotEmpty,
      "csv: columns that are no features."));
  table.push_back(Choice<Header>(
      "data.header",
      [](NodeSettings& s) -> Header& { return s.data.common.header; },
      {{"auto", Header::kAuto},
       {"yes", Header::kYes},
       {"no", Header::kNo},
       {"skip", Header::kSkip}},
      "csv: whether the first line holds names. auto: by comparing it with the "
      "lines below, and refused where that is not clear; skip: pass over it "
      "unread."));
  Setting delimiter = Named("data.delimiter", "", "one character, or tab",
                            "csv: what stands between two columns.");
  delimiter.set = [](const RawValue& value, NodeSettings& settings) {
    if (value.is_list) return NotAllowed();
    if (value.text == "tab") {
      settings.data.common.delimiter = '\t';
      return absl::OkStatus();
    }
    if (value.text.size() != 1) return NotAllowed();
    settings.data.common.delimiter = value.text[0];
    return absl::OkStatus();
  };
  delimiter.get = [](const NodeSettings& settings) -> std::string {
    const char c = settings.data.common.delimiter;
    return c == '\t' ? "tab" : WriteText(std::string(1, c));
  };
  table.push_back(std::move(delimiter));
  table.push_back(Integer(
      "data.index_base",
      [](NodeSettings& s) -> int64_t& { return s.data.common.index_base; }, 0,
      1, "",
      "libsvm: the index of the first feature. scikit-learn writes files that "
      "count from 0."));
  table.push_back(Choice<Layout>(
      "data.layout",
      [](NodeSettings& s) -> Layout& { return s.data.common.layout; },
      {{"auto", Layout::kAuto},
       {"nchw", Layout::kNchw},
       {"nhwc", Layout::kNhwc}},
      "npz, npy: where arrays of images keep their channels: before height and "
      "width, or after them. auto: before them; an array that looks like the "
      "other is refused."));
  table.push_back(Text(
      "data.features_key",
      [](NodeSettings& s) -> std::string& {
        return s.data.common.features_key;
      },
      "a name", NotEmpty, "npz: the array of features."));
  table.push_back(Text(
      "data.labels_key",
      [](NodeSettings& s) -> std::string& { return s.data.common.labels_key; },
      "a name", NotEmpty, "npz: the array of labels."));
  table.push_back(IntegerList(
      "data.resize",
      [](NodeSettings& s) -> std::vector<int64_t>& {
        return s.data.common.resize;
      },
      "[height, width], or [] for none",
      "images: the size that all pictures are brought to. Empty: pictures of "
      "different sizes are refused."));
  table.push_back(Integer(
      "data.channels",
      [](NodeSettings& s) -> int64_t& { return s.data.common.channels; }, 0, 3,
      "",
      "images: 1 makes all pictures grey, 3 coloured; 0: as they are, and grey "
      "ones among coloured ones are refused."));
  table.push_back(Size(
      "data.max_bytes",
      [](NodeSettings& s) -> uint64_t& { return s.data.common.max_bytes; },
      4096, "A data set that takes more memory than this is refused."));
  table.push_back(Interval(
      "data.watch",
      [](NodeSettings& s) -> absl::Duration& { return s.data.watch; },
      "How often a running daemon looks whether its data files have changed, "
      "to take up new rows within the run; 0s: never."));
  table.push_back(TextList(
      "data.train.paths",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.data.train_paths;
      },
      "paths, as many as data.format takes", NotEmpty,
      "Files to train on. A node cannot start without."));
  table.push_back(Integer(
      "data.train.rows",
      [](NodeSettings& s) -> int64_t& { return s.data.train_rows; }, 0, kMany,
      "rows",
      "Rows that the training files must hold, so that a cut file is noticed; "
      "0: any number."));
  table.push_back(TextList(
      "data.test.paths",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.data.test_paths;
      },
      "paths, as many as data.format takes", NotEmpty,
      "Files to evaluate on; empty: the node does not evaluate."));
  table.push_back(Text(
      "data.test.features_key",
      [](NodeSettings& s) -> std::string& { return s.data.test_features_key; },
      "a name, or \"\" for that of data.features_key", AnyText,
      "npz: the array of features in the test file, which may be the training "
      "file itself."));
  table.push_back(Text(
      "data.test.labels_key",
      [](NodeSettings& s) -> std::string& { return s.data.test_labels_key; },
      "a name, or \"\" for that of data.labels_key", AnyText,
      "npz: the array of labels in the test file."));
  table.push_back(Integer(
      "data.test.rows",
      [](NodeSettings& s) -> int64_t& { return s.data.test_rows; }, 0, kMany,
      "rows", "Rows that the test files must hold; 0: any number."));
  return table;
}

std::vector<Setting> StandardiseTable() {
  using Per = StandardiseSettings::Per;
  using Over = StandardiseSettings::Over;
  std::vector<Setting> table;
  table.push_back(Choice<Per>(
      "data.standardise.per",
      [](NodeSettings& s) -> Per& { return s.data.standardise.per; },
      {{"none", Per::kNone},
       {"all", Per::kAll},
       {"channel", Per::kChannel},
       {"feature", Per::kFeature}},
      "Take mean and deviation from training rows: one pair for all values, "
      "one a channel of images or one a feature."));
  table.push_back(Choice<Over>(
      "data.standardise.over",
      [](NodeSettings& s) -> Over& { return s.data.standardise.over; },
      {{"node", Over::kNode}, {"network", Over::kNetwork}},
      "Whose rows data.standardise.per is taken from. node: this node's own, "
      "so that nodes with different rows scale differently; network: those of "
      "all nodes, pooled when the plan is applied."));
  table.push_back(NumberList(
      "data.standardise.mean",
      [](NodeSettings& s) -> std::vector<float>& {
        return s.data.standardise.mean;
      },
      "numbers: one, one a channel or one a feature", false,
      "What is subtracted, in the units after data.divide."));
  table.push_back(NumberList(
      "data.standardise.std",
      [](NodeSettings& s) -> std::vector<float>& {
        return s.data.standardise.std;
      },
      "numbers of at least 0, as many as data.standardise.mean; 0 counts as 1",
      true, "What is divided by."));
  table.push_back(Text(
      "data.standardise.file",
      [](NodeSettings& s) -> std::string& { return s.data.standardise.file; },
      "a path, or \"\" for none", AnyText,
      "CSV with the columns mean and std and one line a feature, the same file "
      "on all nodes."));
  return table;
}

std::vector<Setting> PartitionTable() {
  std::vector<Setting> table;
  table.push_back(Choice<std::string>(
      "data.partition.kind",
      [](NodeSettings& s) -> std::string& { return s.data.partition.kind; },
      {{"none", "none"},
       {"iid", "iid"},
       {"quantity", "quantity"},
       {"dirichlet", "dirichlet"},
       {"classes", "classes"},
       {"explicit", "explicit"}},
      "For experiments in which all nodes have the same files: which rows are "
      "this node's. none: all; iid: an equal random part; quantity: random "
      "parts of sizes Dir(theta); dirichlet: each class split by Dir(theta); "
      "classes: rows of a few classes only; explicit: sizes and ratios."));
  table.push_back(Integer(
      "data.partition.count",
      [](NodeSettings& s) -> int64_t& { return s.data.partition.count; }, 1,
      100000, "parts",
      "Parts the rows are split into, the same on all nodes."));
  table.push_back(Integer(
      "data.partition.index",
      [](NodeSettings& s) -> int64_t& { return s.data.partition.index; }, 0,
      99999, "", "This node's part, from 0; below data.partition.count."));
  table.push_back(Seed(
      "data.partition.seed",
      [](NodeSettings& s) -> uint64_t& { return s.data.partition.seed; },
      "Seed of the split, the same on all nodes."));
  table.push_back(Positive(
      "data.partition.theta",
      [](NodeSettings& s) -> double& { return s.data.partition.theta; },
      "dirichlet, quantity: concentration; the smaller, the more the parts "
      "differ."));
  table.push_back(Integer(
      "data.partition.classes_per_node",
      [](NodeSettings& s) -> int64_t& {
        return s.data.partition.classes_per_node;
      },
      1, 65536, "classes", "classes: how many classes a part holds."));
  table.push_back(NumberList(
      "data.partition.sizes",
      [](NodeSettings& s) -> std::vector<double>& {
        return s.data.partition.sizes;
      },
      "numbers of at least 0, as many as data.partition.count, their sum at "
      "most 1",
      true,
      "explicit: which share of all rows each part has, the same list on all "
      "nodes, such as [0.1, 0.1, 0.2, 0.4]."));
  table.push_back(RatioList(
      "data.partition.ratios",
      [](NodeSettings& s) -> std::vector<std::vector<double>>& {
        return s.data.partition.ratios;
      },
      "as many as data.partition.count, each a number of at least 0 for every "
      "class, or [] for the mixture of all rows",
      "explicit: how the classes are mixed in each part, the same list on all "
      "nodes, such as [\"1:99\", \"99:1\", \"3:7\", \"6:4\"]."));
  return table;
}

}  // namespace dfl::config
