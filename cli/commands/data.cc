// dflctl data show: what the rows of running nodes are and mean.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/data_text.h"

namespace dfl::cli {
namespace {

ExitCode Show(Context& context, int64_t features) {
  const auto answers = context.AskAll<client::NodeData>(
      [](client::ControlClient& daemon) { return daemon.Data(""); });
  context.Print(
      Context::TargetsJson<client::NodeData>(
          answers, [](const client::NodeData& data,
                      Json& entry) { entry["data"] = DataJson(data); }),
      [&] {
        std::string out;
        for (const auto& answer : answers) {
          if (!answer.result.ok()) continue;
          absl::StrAppend(&out, out.empty() ? "" : "\n", answer.result->node,
                          ":\n", DataText(*answer.result, features));
        }
        return out;
      });
  for (const auto& answer : answers) {
    if (!answer.result.ok()) continue;
    for (const std::string& warning : answer.result->warnings) {
      context.Warn(absl::StrCat(answer.result->node, ": ", warning));
    }
  }
  return context.Conclude(answers);
}

}  // namespace

void AddData(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = AddCommand(app, "data", "The rows of running nodes",
                              "show --target gateway-07:7601");
  noun->require_subcommand(1);
  auto features = std::make_shared<int64_t>(20);
  CLI::App* show = AddCommand(
      *noun, "show",
      "Rows, classes, ranges and scaling of a node's data, and the data "
      "contract in force",
      "--features 100 -o json");
  show->add_option("--features", *features,
                   "How many features the table shows, at most 1000")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  show->callback([&chosen, features] {
    chosen = [features](Context& context) { return Show(context, *features); };
  });
}

}  // namespace dfl::cli
