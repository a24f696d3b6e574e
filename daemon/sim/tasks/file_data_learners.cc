#include "daemon/sim/tasks/file_data_learners.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/node_data.h"
#include "daemon/data/dataset.h"
#include "daemon/learner/opening/model_learners.h"
#include "daemon/learner/opening/torch_module.h"

namespace dfl::sim {
namespace {

class FileDataLearners final : public DataLearners {
 public:
  explicit FileDataLearners(std::vector<config::NodeData> nodes)
      : nodes_(std::move(nodes)) {
    for (const config::NodeData& node : nodes_) {
      rows_.push_back(node.train.size());
    }
  }

  absl::Span<const int64_t> rows() const override { return rows_; }

  absl::Status FlipLabels(int64_t i) override {
    data::DatasetView& train = nodes_[static_cast<size_t>(i)].train;
    if (train.dataset().is_regression()) {
      return absl::InvalidArgumentError(
          "network.hostile.attack: labels needs data that have labels, and "
          "these have targets");
    }
    data::Dataset::Answers answers = train.dataset().answers();
    for (int64_t& label : answers.labels) label = answers.classes - 1 - label;
    train = train.On(std::make_shared<const data::Dataset>(
        train.dataset().With(std::move(answers), train.dataset().columns())));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      int64_t i, const core::ModelSpec& spec, uint64_t data_seed) override {
    const config::NodeData& node = nodes_[static_cast<size_t>(i)];
    learner::LearnerData data(node.train);
    data.test = *node.test;
    data.standardizer = node.standardizer;
    learner::LearnerOptions options;
    options.data_seed = data_seed;
    return models_.Create(spec, std::move(data), options);
  }

 private:
  learner::ModelLearners models_{learner::TorchModulePlaces()};
  std::vector<config::NodeData> nodes_;  // views of one data set
  std::vector<int64_t> rows_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DataLearners>> OpenFileDataLearners(
    const config::DataSettings& settings) {
  DFL_ASSIGN_OR_RETURN(config::DataFiles files,
                       config::ReadDataFiles(settings, kProblemPath));
  if (!files.test) files.test = files.train;
  std::vector<config::NodeData> nodes;
  for (int64_t i = 0; i < settings.partition.count; ++i) {
    DFL_ASSIGN_OR_RETURN(config::NodeData part,
                         config::TakePart(files, settings, i, kProblemPath));
    nodes.push_back(std::move(part));
  }
  return std::make_unique<FileDataLearners>(std::move(nodes));
}

}  // namespace dfl::sim
