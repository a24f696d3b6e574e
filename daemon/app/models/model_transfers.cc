#include "daemon/app/models/model_transfers.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace dfl::app {
namespace {

// A file being made. Whoever waits for it is answered in any case: the trainer
// may go before its turn comes.
struct Work {
  explicit Work(ModelTransfers::SourceDone done) : done(std::move(done)) {}
  ~Work() {
    if (done) {
      done(absl::UnavailableError(
          "the model was replaced meanwhile, or the daemon is shutting down; "
          "try again"));
    }
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void Answer(absl::StatusOr<std::unique_ptr<control::ModelSource>> source) {
    std::exchange(done, nullptr)(std::move(source));
  }

  ModelTransfers::SourceDone done;
  ports::ModelInfo model;
  runtime::SnapshotPtr snapshot;
  ModelAbout about;
  std::vector<std::string> others;  // values of model.others
  std::string torchscript;
  absl::Status written;
};

}  // namespace

void ModelTransfers::BeginExport(control::ModelFileFormat format,
                                 SourceDone done) {
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_), format,
              done = std::move(done)] {
    node_.CopyModel([this, alive, format,
                     done](absl::StatusOr<runtime::SnapshotPtr> snapshot) {
      if (alive.expired()) {
        return done(absl::UnavailableError("the daemon is shutting down"));
      }
      if (!snapshot.ok()) return done(snapshot.status());
      MakeFile(format, *std::move(snapshot), "", done);
    });
  });
}

void ModelTransfers::MakeFile(control::ModelFileFormat format,
                              runtime::SnapshotPtr snapshot,
                              const std::string& score,
                              const SourceDone& done) {
  // LibTorch has what is neither trained nor mixed, and writes TorchScript, on
  // its thread. The factory outlives that thread.
  auto work = std::make_shared<Work>(done);
  work->model = *node_.model();
  work->snapshot = std::move(snapshot);
  work->about.run_id = node_.plan_in_force()->run_id;
  work->about.step = work->snapshot->steps;
  work->about.score = score;
  work->about.contract = work->model.contract;
  work->about.contract.input = work->model.scaling;
  if (format == control::ModelFileFormat::kTorchScript) {
    plans_.trainer()->RunWithLearner(
        [&learners = learners_, work](ports::Learner& learner) {
          work->written = learners.ExportTorchScript(
              learner, work->snapshot->parameters, work->snapshot->buffers,
              [&work](absl::string_view piece) {
                work->torchscript.append(piece.data(), piece.size());
                return absl::OkStatus();
              });
        },
        [work] {
          if (!work->written.ok()) return work->Answer(work->written);
          work->Answer(MakeBytesSource(
              std::move(work->torchscript), work->snapshot->steps,
              DescriptionOf(work->model, work->about)));
        });
    return;
  }
  const auto answer = [work] {
    work->Answer(MakeSafetensorsSource(work->model, work->snapshot,
                                       std::move(work->others), work->about));
  };
  if (work->model.others.empty()) return answer();
  plans_.trainer()->RunWithLearner(
      [work](ports::Learner&) {
        for (const ports::FixedTensor& tensor : work->model.others) {
          work->others.push_back(tensor.read());
        }
      },
      answer);
}

absl::StatusOr<std::unique_ptr<control::ModelSink>> ModelTransfers::BeginImport(
    const control::ImportRequest& request) {
  if (request.format != control::ModelFileFormat::kSafetensors) {
    return absl::InvalidArgumentError(
        "only safetensors files can be imported; a TorchScript model is named "
        "in the plan (model.path)");
  }
  const std::optional<NodeLearner::Built> built = plans_.learner().built();
  if (!built) {
    return absl::FailedPreconditionError(
        "there is no run plan yet, so no model to import into; apply one "
        "first: dflctl plan apply FILE");
  }
  return MakeSafetensorsSink(
      built->model, request,
      [this](std::shared_ptr<const runtime::Snapshot> model,
             runtime::ModelParts parts, control::Done<int64_t> done) {
        loop_.Post([this, model = std::move(model), parts = std::move(parts),
                    done = std::move(done)] {
          node_.ReplaceModel(
              model,
              [&node = node_, done](absl::Status status) {
                if (!status.ok()) return done(status);
                done(node.Status().step);
              },
              parts);
        });
      });
}

}  // namespace dfl::app
