#include "daemon/app/models/model_files.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/app/models/contract_json.h"
#include "daemon/app/version.h"
#include "daemon/base/status_macros.h"
#include "daemon/store/safetensors.h"
#include "nlohmann/json.hpp"

namespace dfl::app {
namespace {

store::SafetensorsMetadata MetadataOf(const ports::ModelInfo& model,
                                      const ModelAbout& about) {
  store::SafetensorsMetadata metadata = {
      {"dfld_version", kVersion},
      {"fingerprint", model.contract.model},
      {kContractKey, ContractJson(about.contract)},
      {"model", model.kind},
      {"run", about.run_id},
      {"step", absl::StrCat(about.step)}};
  if (!about.score.empty()) metadata[kScoreKey] = about.score;
  return metadata;
}

class SafetensorsFile final : public control::ModelSource {
 public:
  // `source` reads the two before it.
  SafetensorsFile(runtime::SnapshotPtr snapshot,
                  std::shared_ptr<const std::vector<std::string>> others,
                  store::SafetensorsSource source, std::string description)
      : snapshot_(std::move(snapshot)),
        others_(std::move(others)),
        source_(std::move(source)),
        description_(std::move(description)) {}

  int64_t total_bytes() const override {
    return static_cast<int64_t>(source_.size());
  }
  int64_t step() const override { return snapshot_->steps; }
  std::string description() const override { return description_; }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) override {
    std::string bytes(
        static_cast<size_t>(std::min(max_bytes, total_bytes() - offset)), '\0');
    bytes.resize(
        source_.Read(static_cast<uint64_t>(offset), absl::MakeSpan(bytes)));
    return bytes;
  }

 private:
  const runtime::SnapshotPtr snapshot_;
  const std::shared_ptr<const std::vector<std::string>> others_;
  const store::SafetensorsSource source_;
  const std::string description_;
};

class BytesFile final : public control::ModelSource {
 public:
  BytesFile(std::string bytes, int64_t step, std::string description)
      : bytes_(std::move(bytes)),
        step_(step),
        description_(std::move(description)) {}

  int64_t total_bytes() const override {
    return static_cast<int64_t>(bytes_.size());
  }
  int64_t step() const override { return step_; }
  std::string description() const override { return description_; }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) override {
    return bytes_.substr(static_cast<size_t>(offset),
                         static_cast<size_t>(max_bytes));
  }

 private:
  const std::string bytes_;
  const int64_t step_;
  const std::string description_;
};

class SafetensorsSink final : public control::ModelSink {
 public:
  SafetensorsSink(ports::ModelInfo model, store::ImportOptions options,
                  const ContractUse& use, ReplaceModel replace)
      : partial_(options.partial()),
        snapshot_(std::make_shared<runtime::Snapshot>()),
        contract_(model.contract),
        use_(use),
        replace_(std::move(replace)) {
    snapshot_->parameters.resize(static_cast<size_t>(model.parameter_count));
    snapshot_->buffers.resize(static_cast<size_t>(model.buffer_count));
    reader_ = std::make_unique<store::SafetensorsReader>(
        std::move(model), absl::MakeSpan(snapshot_->parameters),
        absl::MakeSpan(snapshot_->buffers), std::move(options));
    reader_->CheckMetadata([this](const store::SafetensorsMetadata& metadata) {
      return CheckContract(metadata);
    });
  }

  absl::Status Append(absl::string_view data) override {
    return reader_->Feed(data);
  }
  void Commit(control::Done<control::ImportResult> done) override {
    const absl::Status whole = reader_->Finish();
    if (!whole.ok()) return done(whole);
    control::ImportResult result;
    result.notes = notes_;
    result.notes.insert(result.notes.end(), reader_->plan().notes.begin(),
                        reader_->plan().notes.end());
    runtime::ModelParts parts;
    parts.whole = !partial_;
    for (const store::ImportPlan::Move& move : reader_->plan().moves) {
      auto& ranges = move.buffer ? parts.buffers : parts.parameters;
      ranges.push_back({move.to.offset, move.to.size});
      if (!move.buffer) result.parameter_count += move.to.size;
    }
    replace_(std::move(snapshot_), std::move(parts),
             [result, done = std::move(done)](absl::StatusOr<int64_t> step) {
               if (!step.ok()) return done(step.status());
               control::ImportResult told = result;
               told.step = *step;
               done(std::move(told));
             });
  }

 private:
  absl::Status CheckContract(const store::SafetensorsMetadata& metadata) {
    const auto found = metadata.find(kContractKey);
    if (found == metadata.end()) {
      notes_.push_back(
          "the file does not say what its numbers mean; classes, features and "
          "scaling are taken to be the node's");
      return absl::OkStatus();
    }
    DFL_ASSIGN_OR_RETURN(const core::DataContract file,
                         ParseContractJson(found->second));
    DFL_ASSIGN_OR_RETURN(notes_, CheckFileContract(file, contract_, use_));
    return absl::OkStatus();
  }

  const bool partial_;
  std::shared_ptr<runtime::Snapshot> snapshot_;
  std::unique_ptr<store::SafetensorsReader> reader_;
  const core::DataContract contract_;
  const ContractUse use_;
  std::vector<std::string> notes_;
  const ReplaceModel replace_;
};

}  // namespace

std::string DescriptionOf(const ports::ModelInfo& model,
                          const ModelAbout& about) {
  nlohmann::ordered_json description = nlohmann::ordered_json::object();
  for (const auto& [key, value] : MetadataOf(model, about)) {
    description[key] = key == kContractKey
                           ? nlohmann::ordered_json::parse(value)
                           : nlohmann::ordered_json(value);
  }
  return description.dump(2, ' ', false,
                          nlohmann::ordered_json::error_handler_t::replace);
}

absl::StatusOr<std::unique_ptr<control::ModelSource>> MakeSafetensorsSource(
    const ports::ModelInfo& model, runtime::SnapshotPtr snapshot,
    std::vector<std::string> others, const ModelAbout& about) {
  const auto kept =
      std::make_shared<const std::vector<std::string>>(std::move(others));
  std::vector<store::RawTensor> raw;
  for (size_t i = 0; i < kept->size(); ++i) {
    const ports::FixedTensor& tensor = model.others[i];
    raw.push_back({tensor.name, tensor.dtype, tensor.shape, (*kept)[i]});
  }
  DFL_ASSIGN_OR_RETURN(store::SafetensorsSource source,
                       store::SafetensorsSource::Create(
                           model, snapshot->parameters, snapshot->buffers,
                           MetadataOf(model, about), raw));
  return std::make_unique<SafetensorsFile>(std::move(snapshot), kept,
                                           std::move(source),
                                           DescriptionOf(model, about));
}

std::unique_ptr<control::ModelSource> MakeBytesSource(std::string bytes,
                                                      int64_t step,
                                                      std::string description) {
  return std::make_unique<BytesFile>(std::move(bytes), step,
                                     std::move(description));
}

absl::StatusOr<std::unique_ptr<control::ModelSink>> MakeSafetensorsSink(
    ports::ModelInfo model, const control::ImportRequest& request,
    ReplaceModel replace) {
  store::ImportOptions options;
  options.only = request.only;
  options.init_missing = request.init_missing;
  options.strip_prefix = request.strip_prefix;
  return std::make_unique<SafetensorsSink>(
      std::move(model), std::move(options),
      ContractUse{!request.only.empty(), request.other_names},
      std::move(replace));
}

}  // namespace dfl::app
