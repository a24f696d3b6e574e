// dflctl checkpoint list|save|restore.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/files/transfer.h"
#include "daemon/base/status_macros.h"

namespace dfl::cli {
namespace {

struct SaveCommand {
  std::string to;  // "": the node alone keeps it
};

struct RestoreCommand {
  std::string file;
  client::RestoreOptions options;
};

std::string TimeText(int64_t unix_nanos) {
  if (unix_nanos == 0) return "-";
  return absl::FormatTime(absl::RFC3339_sec, absl::FromUnixNanos(unix_nanos),
                          absl::UTCTimeZone());
}

Json ToJsonValue(const client::CheckpointInfo& info) {
  return Json{
      {"file", info.file},
      {"bytes", info.bytes},
      {"written",
       info.unix_nanos == 0 ? Json(nullptr) : Json(TimeText(info.unix_nanos))},
      {"node", info.node},
      {"run_id", info.run_id},
      {"plan_version", info.plan_version},
      {"algorithm", info.algorithm},
      {"iteration", info.iteration},
      {"steps", info.steps},
      {"rounds", info.rounds},
      {"tracker_epoch", info.tracker_epoch}};
}

// "iteration 4096 (20480 steps, 4096 rounds), 3.15 MB".
std::string WhichText(const client::CheckpointInfo& info) {
  return absl::StrCat("iteration ", info.iteration, " (", info.steps,
                      " steps, ", info.rounds, " rounds), ",
                      HumanBytes(info.bytes));
}

// --------------------------------------------------------------------- list --

std::string ListText(const client::CheckpointList& list, bool wide) {
  std::vector<std::string> titles = {
      "FILE",  ">ITERATION", ">STEPS", ">ROUNDS",   "WRITTEN",
      ">SIZE", "RUN",        ">PLAN",  "ALGORITHM", ">EPOCH"};
  if (wide) titles.insert(titles.begin() + 1, "NODE");
  Table table(titles);
  for (const client::CheckpointInfo& info : list.checkpoints) {
    std::vector<std::string> row = {
        info.file,
        absl::StrCat(info.iteration),
        absl::StrCat(info.steps),
        absl::StrCat(info.rounds),
        TimeText(info.unix_nanos),
        HumanBytes(info.bytes),
        info.run_id,
        absl::StrCat(info.plan_version),
        info.algorithm,
        info.tracker_epoch == 0 ? "-" : absl::StrCat(info.tracker_epoch)};
    if (wide) row.insert(row.begin() + 1, info.node);
    table.Add(std::move(row));
  }
  std::string text = table.ToString();
  for (const client::AsideCheckpoint& aside : list.aside) {
    absl::StrAppend(&text, "not used: ", Printable(aside.file), ", ",
                    HumanBytes(aside.bytes), aside.reason.empty() ? "" : ": ",
                    Printable(aside.reason), "\n");
  }
  return text;
}

ExitCode List(Context& context) {
  const auto answers = context.AskAll<client::CheckpointList>(
      [](client::ControlClient& daemon) { return daemon.Checkpoints(); });
  context.Print(
      Context::TargetsJson<client::CheckpointList>(
          answers,
          [](const client::CheckpointList& list, Json& entry) {
            entry["node"] = list.node;
            entry["checkpoints"] = Json::array();
            for (const client::CheckpointInfo& info : list.checkpoints) {
              entry["checkpoints"].push_back(ToJsonValue(info));
            }
            entry["aside"] = Json::array();
            for (const client::AsideCheckpoint& aside : list.aside) {
              entry["aside"].push_back(
                  Json{{"file", aside.file},
                       {"bytes", aside.bytes},
                       {"reason", aside.reason.empty() ? Json(nullptr)
                                                       : Json(aside.reason)}});
            }
          }),
      [&] {
        std::string out;
        for (const auto& answer : answers) {
          if (!answer.result.ok()) continue;
          if (!out.empty()) out += "\n";
          if (answers.size() > 1) absl::StrAppend(&out, answer.target, ":\n");
          out += ListText(*answer.result, context.wide());
        }
        return out;
      });
  return context.Conclude(answers);
}

// --------------------------------------------------------------------- save --

using Saved = Answer<client::CheckpointInfo>;

absl::StatusOr<client::CheckpointInfo> SaveOn(client::ControlClient& daemon) {
  absl::StatusOr<client::CheckpointInfo> saved = daemon.SaveCheckpoint();
  if (!absl::IsDeadlineExceeded(saved.status())) return saved;
  return absl::DeadlineExceededError(
      absl::StrCat(saved.status().message(),
                   "; it may still be written: see `dflctl checkpoint list`, "
                   "and give a slow disk a longer --timeout"));
}

Json SavedJson(const std::vector<Saved>& answers, const std::string& to) {
  return Context::TargetsJson<client::CheckpointInfo>(
      answers, [&to](const client::CheckpointInfo& info, Json& entry) {
        entry["checkpoint"] = ToJsonValue(info);
        if (!to.empty()) entry["file"] = to;
      });
}

absl::StatusOr<client::CheckpointInfo> SaveTo(Context& context,
                                              client::ControlClient& daemon,
                                              const std::string& path) {
  // First: a file that cannot be written costs the node nothing.
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<FileOut> out,
                       FileOut::Open(context, path, "a checkpoint"));
  DFL_RETURN_IF_ERROR(SaveOn(daemon).status());
  DFL_ASSIGN_OR_RETURN(
      client::CheckpointInfo info,
      daemon.ExportCheckpoint([&](absl::string_view data, int64_t total) {
        return out->Append(data, total);
      }));
  DFL_RETURN_IF_ERROR(out->Commit());
  return info;
}

ExitCode SaveToFile(Context& context, const std::string& path) {
  const absl::StatusOr<client::ControlClient*> daemon = context.OneTarget();
  if (!daemon.ok()) return context.Usage(daemon.status());
  const bool to_stdout = IsStdout(path);
  const absl::StatusOr<client::CheckpointInfo> info =
      SaveTo(context, **daemon, path);
  if (!info.ok()) return context.Fail(info.status());
  const std::string text =
      absl::StrCat("the checkpoint of ", info->node, " at ", WhichText(*info));
  if (to_stdout) {
    context.Say(Printable(text));
    return kOk;
  }
  context.Print(SavedJson({{(*daemon)->target(), *info}}, path), [&] {
    return absl::StrCat(path, ": ", Printable(text), "\n");
  });
  return kOk;
}

ExitCode Save(Context& context, const SaveCommand& command) {
  if (!command.to.empty()) return SaveToFile(context, command.to);
  const auto answers = context.AskAll<client::CheckpointInfo>(SaveOn);
  context.Print(SavedJson(answers, ""), [&] {
    std::string out;
    for (const Saved& answer : answers) {
      if (!answer.result.ok()) continue;
      absl::StrAppend(&out, answer.target, ": wrote ", answer.result->file,
                      ", ", WhichText(*answer.result), "\n");
    }
    return out;
  });
  return context.Conclude(answers);
}

// ------------------------------------------------------------------ restore --

absl::StatusOr<client::RestoreResult> RestoreFrom(
    Context& context, client::ControlClient& daemon,
    const RestoreCommand& command) {
  DFL_ASSIGN_OR_RETURN(
      const std::unique_ptr<InputFile> file,
      InputFile::Open(command.file,
                      "one that `dflctl checkpoint save --to` wrote"));
  ProgressLine progress(context);
  return daemon.RestoreCheckpoint(
      file->size(),
      [&](int64_t offset, int64_t max_bytes) {
        progress.Draw(offset, file->size());
        return file->Read(offset, max_bytes);
      },
      command.options);
}

ExitCode Restore(Context& context, const RestoreCommand& command) {
  const absl::StatusOr<client::ControlClient*> daemon = context.OneTarget();
  if (!daemon.ok()) return context.Usage(daemon.status());
  const absl::StatusOr<client::RestoreResult> result =
      RestoreFrom(context, **daemon, command);
  if (!result.ok()) return context.Fail(result.status());
  const std::string& target = (*daemon)->target();
  context.Print(Context::TargetsJson<client::RestoreResult>(
                    {{target, *result}},
                    [&](const client::RestoreResult& restored, Json& entry) {
                      entry["file"] = command.file;
                      entry["checkpoint"] = ToJsonValue(restored.checkpoint);
                      entry["phase"] = client::PhaseName(restored.phase);
                    }),
                [&] {
                  return absl::StrCat(
                      target, ": restored ", WhichText(result->checkpoint),
                      "; it is ", client::PhaseName(result->phase),
                      ", and goes on from there by `dflctl train "
                      "start`\n");
                });
  return kOk;
}

}  // namespace

void AddCheckpoint(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = AddCommand(
      app, "checkpoint", "What a node keeps of its training, to go on from",
      "list --target gateway-07:7601");
  noun->require_subcommand(1);

  AddCommand(*noun, "list",
             "Those that a node's disk holds, the newest first, and files that "
             "were set aside, with the reason",
             "--all gateways")
      ->callback([&chosen] { chosen = List; });

  auto save = std::make_shared<SaveCommand>();
  CLI::App* command = AddCommand(
      *noun, "save",
      "Have a node write one at its next boundary, and wait until it is "
      "written. A node that does not train writes what it has",
      "--to gateway-07.ckpt --target gateway-07:7601");
  command
      ->add_option("--to", save->to,
                   "Then write the newest one to this file, too, which appears "
                   "when complete. A plain file is replaced and keeps its "
                   "mode; - is stdout")
      ->type_name("FILE");
  command->callback([&chosen, save] {
    chosen = [save](Context& context) { return Save(context, *save); };
  });

  auto restore = std::make_shared<RestoreCommand>();
  command = AddCommand(
      *noun, "restore",
      "Have a node that does not train go on from a checkpoint file, once it "
      "is told to train: `dflctl train start`. The file must be of a node of "
      "that name, on this machine or another, and of the run and the version "
      "of the plan in force",
      "gateway-07.ckpt --target gateway-07:7601");
  command
      ->add_option("FILE", restore->file,
                   "As `dflctl checkpoint save --to` wrote it")
      ->required();
  command->add_flag("--force", restore->options.other_version,
                    "Take it although it is of another version of the plan: "
                    "its model and its counts are taken, and the algorithm "
                    "begins anew");
  command->callback([&chosen, restore] {
    chosen = [restore](Context& context) { return Restore(context, *restore); };
  });
}

}  // namespace dfl::cli
