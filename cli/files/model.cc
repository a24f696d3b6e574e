// dflctl model export|import.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/files/transfer.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::cli {
namespace {

struct ExportCommand {
  std::string file;
  std::string format;
};

struct ImportCommand {
  std::string file;
  client::ImportOptions options;
};

// By --format, else by the file's name.
absl::StatusOr<client::ModelFormat> FormatOf(const ExportCommand& command) {
  std::string name = command.format;
  if (name.empty()) {
    name = absl::EndsWith(command.file, ".pt") ? "torchscript" : "safetensors";
  }
  if (name == "safetensors") return client::ModelFormat::kSafetensors;
  if (name == "torchscript") return client::ModelFormat::kTorchScript;
  const std::vector<std::string> known = {"safetensors", "torchscript"};
  return UnknownNameError("--format", name, known);
}

const char* Name(client::ModelFormat format) {
  return format == client::ModelFormat::kTorchScript ? "torchscript"
                                                     : "safetensors";
}

// Writes the model to `path`. Sets `description` to the file that has its
// description; "": none.
absl::StatusOr<client::ExportResult> ExportTo(Context& context,
                                              client::ControlClient& daemon,
                                              client::ModelFormat format,
                                              const std::string& path,
                                              std::string& description) {
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<FileOut> out,
                       FileOut::Open(context, path, "a model"));
  DFL_ASSIGN_OR_RETURN(
      const client::ExportResult result,
      daemon.ExportModel(format, [&](absl::string_view data, int64_t total) {
        return out->Append(data, total);
      }));
  // A TorchScript file has no place for it. What it describes comes first.
  const bool beside =
      format == client::ModelFormat::kTorchScript && out->atomic();
  DFL_RETURN_IF_ERROR(out->Commit());
  if (!beside) return result;
  description = absl::StrCat(path, ".json");
  DFL_RETURN_IF_ERROR(
      AtomicFile::Write(description, absl::StrCat(result.description, "\n")));
  return result;
}

ExitCode Export(Context& context, const ExportCommand& command) {
  const absl::StatusOr<client::ModelFormat> format = FormatOf(command);
  if (!format.ok()) return context.Usage(format.status());
  const absl::StatusOr<client::ControlClient*> daemon = context.OneTarget();
  if (!daemon.ok()) return context.Usage(daemon.status());
  const bool to_stdout = IsStdout(command.file);
  std::string description;
  const absl::StatusOr<client::ExportResult> result =
      ExportTo(context, **daemon, *format, command.file, description);
  if (!result.ok()) return context.Fail(result.status());
  if (to_stdout) {
    context.Say(absl::StrCat(
        HumanBytes(result->total_bytes), ", the model of step ", result->step,
        *format == client::ModelFormat::kTorchScript
            ? "; TorchScript has no place for what its numbers mean: export to "
              "a plain file FILE, and FILE.json says it"
            : ""));
    return kOk;
  }
  Json json{{"target", (*daemon)->target()},
            {"file", command.file},
            {"format", Name(*format)},
            {"bytes", result->total_bytes},
            {"step", result->step}};
  if (!description.empty()) json["description"] = description;
  context.Print(json, [&] {
    return absl::StrCat(command.file, ": ", HumanBytes(result->total_bytes),
                        ", the model of step ", result->step,
                        description.empty() ? ""
                                            : absl::StrCat("; ", description,
                                                           " says what "
                                                           "its numbers mean"),
                        "\n");
  });
  return kOk;
}

// What the targets say beside success, each once for all that say the same.
void SayNotes(Context& context,
              const std::vector<Answer<client::ImportResult>>& answers) {
  std::vector<std::pair<std::string, std::string>> notes;  // text, targets
  for (const auto& answer : answers) {
    if (!answer.result.ok()) continue;
    for (const std::string& note : answer.result->notes) {
      const auto same = std::find_if(
          notes.begin(), notes.end(),
          [&note](const auto& told) { return told.first == note; });
      if (same == notes.end()) {
        notes.emplace_back(note, answer.target);
      } else {
        absl::StrAppend(&same->second, ", ", answer.target);
      }
    }
  }
  for (const auto& [note, targets] : notes) {
    context.Say(absl::StrCat(targets, ": ", note));
  }
}

ExitCode Import(Context& context, const ImportCommand& command) {
  const auto file = InputFile::Open(command.file, "a safetensors file");
  if (!file.ok()) return context.Fail(file.status());
  // One after the other: the progress line is one, and so is the disk.
  std::vector<Answer<client::ImportResult>> answers;
  for (size_t i = 0; i < context.targets().size(); ++i) {
    ProgressLine progress(context);
    client::ControlClient& daemon = context.Client(i);
    answers.push_back({daemon.target(),
                       daemon.ImportModel(
                           client::ModelFormat::kSafetensors, (*file)->size(),
                           [&](int64_t offset, int64_t max_bytes) {
                             progress.Draw(offset, (*file)->size());
                             return (*file)->Read(offset, max_bytes);
                           },
                           command.options)});
  }
  SayNotes(context, answers);
  context.Print(Context::TargetsJson<client::ImportResult>(
                    answers,
                    [&](const client::ImportResult& result, Json& entry) {
                      entry["file"] = command.file;
                      entry["parameter_count"] = result.parameter_count;
                      entry["step"] = result.step;
                      entry["notes"] = result.notes;
                    }),
                [&] {
                  std::string out;
                  for (const auto& answer : answers) {
                    if (!answer.result.ok()) continue;
                    absl::StrAppend(&out, answer.target, ": took ",
                                    answer.result->parameter_count,
                                    " parameters at step ", answer.result->step,
                                    "\n");
                  }
                  return out;
                });
  return context.Conclude(answers);
}

}  // namespace

void AddModel(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = AddCommand(app, "model", "The model that a node trains",
                              "export model.safetensors");
  noun->require_subcommand(1);

  auto out = std::make_shared<ExportCommand>();
  CLI::App* command = AddCommand(
      *noun, "export",
      "Write a copy of it to a file, which appears when complete, or to - for "
      "stdout, a FIFO or a device. Class names, features and scaling are in "
      "the "
      "metadata of a safetensors file, and in FILE.json beside a .pt",
      "gateway-07.safetensors --target gateway-07:7601");
  command
      ->add_option("FILE", out->file,
                   "A plain file is replaced and keeps its mode; - is stdout")
      ->required();
  command->add_option("--format", out->format,
                      "safetensors, or torchscript for a torchscript model; "
                      "default: by the file's name, .pt is torchscript");
  command->callback([&chosen, out] {
    chosen = [out](Context& context) { return Export(context, *out); };
  });

  auto in = std::make_shared<ImportCommand>();
  command = AddCommand(
      *noun, "import",
      "Replace its parameters by those of a safetensors file. Tensors that the "
      "node does not train are skipped, F16, BF16 and F64 are converted, and "
      "both is told. A backbone alone, for another head: --only 'backbone.*'",
      "model.safetensors --all gateways");
  command->add_option("FILE", in->file, "safetensors, same names and shapes")
      ->required();
  command
      ->add_option("--only", in->options.only,
                   "Take the tensors whose names are of this pattern, with * "
                   "and ?; the others keep the node's values. Can be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  command->add_flag("--init-missing", in->options.init_missing,
                    "What the file does not have keeps the node's values");
  command
      ->add_option("--strip-prefix", in->options.strip_prefix,
                   "What the file's names begin with and the model's do not, "
                   "such as module.")
      ->type_name("TEXT");
  command->add_flag("--force", in->options.other_names,
                    "Take it although it names classes or features otherwise "
                    "than the node, or scales raw values otherwise");
  command->callback([&chosen, in] {
    chosen = [in](Context& context) { return Import(context, *in); };
  });
}

}  // namespace dfl::cli
