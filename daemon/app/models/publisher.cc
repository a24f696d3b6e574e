#include "daemon/app/models/publisher.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/status_macros.h"
#include "daemon/store/safetensors_header.h"
#include "nlohmann/json.hpp"

namespace dfl::app {
namespace {

constexpr int64_t kPartBytes = int64_t{1} << 20;
// After a write that failed.
constexpr absl::Duration kRetry = absl::Seconds(10);

std::string BesideOf(const std::string& path) {
  return absl::StrCat(path, ".json");
}

// Up to `most` bytes from the beginning of a plain file; "" if there is none.
std::string ReadBeginning(const std::string& path, size_t most) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::ifstream file(path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// The metadata of a safetensors file; empty if it is none.
store::SafetensorsMetadata MetadataAt(const std::string& path) {
  const std::string head = ReadBeginning(path, sizeof(uint64_t));
  uint64_t length = 0;
  if (head.size() < sizeof(length)) return {};
  std::memcpy(&length, head.data(), sizeof(length));
  if (length > 2 * store::kMaxMetadataBytes) return {};
  const std::string text =
      ReadBeginning(path, sizeof(length) + static_cast<size_t>(length));
  const auto header =
      store::ParseSafetensorsHeader(absl::string_view(text).substr(8));
  return header.ok() ? header->metadata : store::SafetensorsMetadata();
}

// The same of the document beside a TorchScript file.
store::SafetensorsMetadata DescriptionAt(const std::string& path) {
  const auto document = nlohmann::json::parse(
      ReadBeginning(path, store::kMaxMetadataBytes), nullptr, false);
  store::SafetensorsMetadata metadata;
  if (!document.is_object()) return metadata;
  for (const auto& [key, value] : document.items()) {
    if (value.is_string()) metadata[key] = value.get<std::string>();
  }
  return metadata;
}

}  // namespace

double ScoreOf(const ports::Evaluation& evaluation) {
  return evaluation.accuracy.value_or(-evaluation.loss);
}

Publisher::Publisher(config::PublishSettings settings, EventLoop& loop,
                     runtime::Node& node, ModelTransfers& transfers,
                     EventHub& events, Logger& log)
    : settings_(std::move(settings)),
      loop_(loop),
      node_(node),
      transfers_(transfers),
      log_(log),
      writer_(loop, "dfld-publish") {
  const Published published = ReadPublished();
  run_ = published.run;
  best_ = published.score;
  if (settings_.when != config::PublishSettings::When::kBest) return;
  subscription_ = events.Subscribe([this](const control::TimedEvent& timed) {
    if (const auto* event = std::get_if<ports::Evaluated>(&timed.event)) {
      // Before the node's next visit to the boundary, which is posted later:
      // the model is still the one that was evaluated.
      loop_.Post([this, alive = std::weak_ptr<bool>(alive_), event = *event] {
        if (!alive.expired()) OnEvaluated(event);
      });
    }
  });
}

Publisher::~Publisher() {
  subscription_.reset();
  writer_.Stop();
  loop_.RunAndWait([this] { alive_.reset(); });
}

control::ModelFileFormat Publisher::format() const {
  const bool torchscript =
      settings_.format == config::PublishSettings::Format::kTorchScript ||
      (settings_.format == config::PublishSettings::Format::kByName &&
       absl::EndsWith(settings_.path, ".pt"));
  return torchscript ? control::ModelFileFormat::kTorchScript
                     : control::ModelFileFormat::kSafetensors;
}

Publisher::Published Publisher::ReadPublished() const {
  const store::SafetensorsMetadata metadata =
      format() == control::ModelFileFormat::kSafetensors
          ? MetadataAt(settings_.path)
          : DescriptionAt(BesideOf(settings_.path));
  Published published;
  const auto run = metadata.find("run");
  const auto score = metadata.find(kScoreKey);
  if (run != metadata.end()) published.run = run->second;
  double value = 0;
  if (score != metadata.end() && absl::SimpleAtod(score->second, &value)) {
    published.score = value;
  }
  return published;
}

void Publisher::Look(const runtime::NodeStatus& status) {
  if (status.run_id.empty()) return;
  BeginRun(status);
  if (settings_.when == config::PublishSettings::When::kBest || busy_ ||
      loop_.Now() < next_try_) {
    return;
  }
  if (status.phase != ports::Phase::kTraining &&
      status.phase != ports::Phase::kFinished) {
    return;
  }
  const bool over =
      status.phase == ports::Phase::kFinished && status.step != written_step_;
  const bool due =
      status.step > 0 &&
      (written_step_ < 0 ? status.step >= settings_.every_steps
                         : status.step / settings_.every_steps >
                               written_step_ / settings_.every_steps);
  if (!due && !over) return;
  busy_ = true;
  node_.CopyModel([this, alive = std::weak_ptr<bool>(alive_)](
                      absl::StatusOr<runtime::SnapshotPtr> snapshot) {
    if (alive.expired()) return;
    busy_ = false;
    if (snapshot.ok()) Write(*std::move(snapshot), std::nullopt);
  });
}

void Publisher::BeginRun(const runtime::NodeStatus& status) {
  if (status.run_id == run_ &&
      (contract_.empty() || status.contract == contract_)) {
    contract_ = status.contract;
    return;
  }
  run_ = status.run_id;
  contract_ = status.contract;
  ++life_;
  written_step_ = -1;
  best_.reset();
  waiting_ = nullptr;
  next_try_ = absl::InfinitePast();
}

void Publisher::OnEvaluated(const ports::Evaluated& event) {
  BeginRun(node_.Status());
  const double score = ScoreOf(event.result);
  if (best_.has_value() && score <= *best_) return;
  node_.CopyModel(
      [this, alive = std::weak_ptr<bool>(alive_), score,
       step = event.step](absl::StatusOr<runtime::SnapshotPtr> snapshot) {
        // A model that has moved on is another one.
        if (alive.expired() || !snapshot.ok() || (*snapshot)->steps != step)
          return;
        best_ = score;
        if (!busy_) return Write(*std::move(snapshot), score);
        waiting_ = *std::move(snapshot);
        waiting_score_ = score;
      });
}

void Publisher::Write(runtime::SnapshotPtr snapshot,
                      std::optional<double> score) {
  busy_ = true;
  const Version version{life_, snapshot->steps, score};
  const std::string text = score ? absl::StrFormat("%.17g", *score) : "";
  transfers_.MakeFile(
      format(), std::move(snapshot), text,
      [this, alive = std::weak_ptr<bool>(alive_),
       version](absl::StatusOr<std::unique_ptr<control::ModelSource>> made) {
        if (alive.expired()) return;
        if (!made.ok()) return OnWritten(version, made.status());
        const std::shared_ptr<control::ModelSource> source = *std::move(made);
        auto status = std::make_shared<absl::Status>();
        writer_.Run([this, source, status] { *status = WriteFile(*source); },
                    [this, alive, version, status] {
                      if (!alive.expired()) OnWritten(version, *status);
                    });
      });
}

absl::Status Publisher::WriteFile(control::ModelSource& source) const {
  DFL_ASSIGN_OR_RETURN(
      const std::unique_ptr<AtomicFile> file,
      AtomicFile::Create(settings_.path, AtomicFile::Readers::kAll));
  for (int64_t at = 0; at < source.total_bytes();) {
    DFL_ASSIGN_OR_RETURN(const std::string part, source.Read(at, kPartBytes));
    DFL_RETURN_IF_ERROR(file->Append(part));
    at += static_cast<int64_t>(part.size());
  }
  DFL_RETURN_IF_ERROR(file->Commit());
  if (format() != control::ModelFileFormat::kTorchScript) {
    return absl::OkStatus();
  }
  return AtomicFile::Write(BesideOf(settings_.path),
                           absl::StrCat(source.description(), "\n"),
                           AtomicFile::Readers::kAll);
}

void Publisher::OnWritten(const Version& version, const absl::Status& status) {
  busy_ = false;
  // What comes back from a former model says nothing of this one.
  if (version.life == life_) {
    if (status.ok()) {
      written_step_ = version.step;
    } else {
      next_try_ = loop_.Now() + kRetry;
      if (version.score == best_) best_.reset();
    }
  }
  std::string fault;
  if (!status.ok()) {
    fault = absl::StrCat("the model of step ", version.step,
                         " is not published: ", status.message());
  }
  bool news = false;
  {
    const absl::MutexLock lock(&mutex_);
    news = fault_.empty() != fault.empty();
    fault_ = fault;
  }
  if (!fault.empty()) {
    log_.Warning("publish", fault);
  } else if (news) {
    log_.Info("publish", absl::StrCat("the model of step ", version.step,
                                      " is at ", settings_.path, " again"));
  }
  if (waiting_ != nullptr) {
    Write(std::exchange(waiting_, nullptr), waiting_score_);
  }
}

void Publisher::Tell(control::DaemonStatus& status) const {
  const absl::MutexLock lock(&mutex_);
  if (!fault_.empty()) status.warnings.push_back(fault_);
}

}  // namespace dfl::app
