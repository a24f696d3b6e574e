#include "daemon/control/transfer_calls.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

absl::StatusOr<ModelFileFormat> FromProto(pb::ModelFormat format) {
  switch (format) {
    case pb::MODEL_FORMAT_SAFETENSORS:
      return ModelFileFormat::kSafetensors;
    case pb::MODEL_FORMAT_TORCHSCRIPT:
      return ModelFileFormat::kTorchScript;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("format: ", static_cast<int>(format),
                       " is unknown; allowed: safetensors, torchscript"));
  }
}

}  // namespace

TransferCalls::TransferCalls(Backend& backend, Answers& answers, Timers& timers,
                             const ControlServerOptions& options)
    : backend_(backend),
      answers_(answers),
      files_(std::make_shared<TokenFiles>(timers, options.transfer_idle_time,
                                          options.max_transfers)) {}

Reactor* TransferCalls::BeginExport(const Call& call,
                                    const pb::BeginExportRequest* request,
                                    pb::BeginExportResponse* response) {
  const absl::StatusOr<ModelFileFormat> format = FromProto(request->format());
  if (!format.ok()) return Answers::Now(call, format.status());
  const absl::Status room = files_->CheckRoom();
  if (!room.ok()) return Answers::Now(call, room);
  Reactor* reactor = call.context->DefaultReactor();
  auto later = answers_.Later(call, reactor, "export the model");
  backend_.BeginExport(
      *format, [later, response, files = files_](
                   absl::StatusOr<std::unique_ptr<ModelSource>> source) {
        // Whoever gave up before the copy was ready does not want it.
        if (!later->Take()) return;
        if (!source.ok()) return later->Finish(source.status());
        response->set_total_bytes((*source)->total_bytes());
        response->set_step((*source)->step());
        response->set_description((*source)->description());
        absl::StatusOr<std::string> token =
            files->AddExport(*std::move(source));
        if (token.ok()) response->set_token(*token);
        later->Finish(token.status());
      });
  return reactor;
}

Reactor* TransferCalls::ReadExport(const Call& call,
                                   const pb::ReadExportRequest* request,
                                   pb::ReadExportResponse* response) {
  absl::StatusOr<std::string> data =
      files_->Read(request->token(), request->offset(), request->max_bytes());
  if (!data.ok()) return Answers::Now(call, data.status());
  response->set_data(*std::move(data));
  return Answers::Now(call, absl::OkStatus());
}

Reactor* TransferCalls::BeginImport(const Call& call,
                                    const pb::BeginImportRequest* request,
                                    pb::BeginImportResponse* response) {
  const auto begin = [&]() -> absl::Status {
    const absl::StatusOr<ModelFileFormat> format = FromProto(request->format());
    if (!format.ok()) return format.status();
    if (*format != ModelFileFormat::kSafetensors) {
      return absl::InvalidArgumentError(
          "only safetensors files are imported: a TorchScript file is code; "
          "name it in the plan's model section instead");
    }
    if (request->total_bytes() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("total_bytes: ", request->total_bytes(),
                       " is not allowed; a model file has at least 1 byte"));
    }
    absl::Status room = files_->CheckRoom();
    if (!room.ok()) return room;
    ImportRequest wanted;
    wanted.format = *format;
    wanted.total_bytes = request->total_bytes();
    wanted.only.assign(request->only().begin(), request->only().end());
    wanted.init_missing = request->init_missing();
    wanted.strip_prefix = request->strip_prefix();
    wanted.other_names = request->other_names();
    absl::StatusOr<std::unique_ptr<ModelSink>> sink =
        backend_.BeginImport(wanted);
    if (!sink.ok()) return sink.status();
    absl::StatusOr<std::string> token =
        files_->AddImport(*std::move(sink), request->total_bytes());
    if (token.ok()) response->set_token(*token);
    return token.status();
  };
  return answers_.NowAudited(
      call,
      absl::StrCat("begin an import of ", request->total_bytes(), " bytes"),
      begin());
}

Reactor* TransferCalls::WriteImport(const Call& call,
                                    const pb::WriteImportRequest* request,
                                    pb::WriteImportResponse* response) {
  const absl::StatusOr<int64_t> received =
      files_->Write(request->token(), request->offset(), request->data());
  if (received.ok()) response->set_received_bytes(*received);
  return Answers::Now(call, received.status());
}

Reactor* TransferCalls::CommitImport(const Call& call,
                                     const pb::CommitImportRequest* request,
                                     pb::CommitImportResponse* response) {
  absl::StatusOr<std::shared_ptr<ModelSink>> sink =
      files_->TakeImport(request->token());
  if (!sink.ok())
    return answers_.NowAudited(call, "import a model", sink.status());
  Reactor* reactor = call.context->DefaultReactor();
  auto later = answers_.Later(call, reactor, "import a model");
  ModelSink& committed = **sink;
  committed.Commit([later, response, keep = *std::move(sink)](
                       absl::StatusOr<ImportResult> result) {
    if (!later->Take()) return;
    if (result.ok()) {
      response->set_parameter_count(result->parameter_count);
      response->set_step(result->step);
      for (const std::string& note : result->notes) response->add_notes(note);
    }
    later->Finish(result.status());
  });
  return reactor;
}

Reactor* TransferCalls::EndTransfer(const Call& call,
                                    const pb::EndTransferRequest* request,
                                    pb::EndTransferResponse*) {
  files_->End(request->token());
  return Answers::Now(call, absl::OkStatus());
}

}  // namespace dfl::control
