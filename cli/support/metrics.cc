// dflctl metrics: what Prometheus would read.
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/commands.h"

namespace dfl::cli {
namespace {

// The lines of metrics whose name begins so, with what is said of them.
std::string Matching(const std::string& text, const std::string& prefix) {
  if (prefix.empty()) return text;
  std::string out;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::string_view name = line;
    if (!absl::ConsumePrefix(&name, "# HELP ")) {
      absl::ConsumePrefix(&name, "# TYPE ");
    }
    if (absl::StartsWith(name, prefix)) absl::StrAppend(&out, line, "\n");
  }
  return out;
}

ExitCode Metrics(Context& context, const std::string& prefix) {
  const auto answers = context.AskAll<std::string>(
      [](client::ControlClient& daemon) { return daemon.Metrics(); });
  context.Print(Context::TargetsJson<std::string>(
                    answers,
                    [&prefix](const std::string& text, Json& entry) {
                      entry["text"] = Matching(text, prefix);
                    }),
                [&] {
                  std::string out;
                  for (const auto& answer : answers) {
                    if (!answer.result.ok()) continue;
                    if (answers.size() > 1) {
                      absl::StrAppend(&out, "# ", answer.target, "\n");
                    }
                    out += Matching(*answer.result, prefix);
                  }
                  return out;
                });
  return context.Conclude(answers);
}

}  // namespace

void AddMetrics(CLI::App& app, Chosen& chosen) {
  auto prefix = std::make_shared<std::string>();
  CLI::App* command = AddCommand(
      app, "metrics", "What the targets tell Prometheus, as text", "dfl_bytes");
  command->add_option("PREFIX", *prefix,
                      "Only metrics whose name begins so; nothing: all");
  command->callback([&chosen, prefix] {
    chosen = [prefix](Context& context) { return Metrics(context, *prefix); };
  });
}

}  // namespace dfl::cli
