// dflctl record list: the orders to the network that the targets hold.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace dfl::cli {
namespace {

using Records = std::vector<client::RecordInfo>;

std::string TimeText(int64_t unix_nanos) {
  if (unix_nanos == 0) return "-";
  return absl::FormatTime(absl::RFC3339_sec, absl::FromUnixNanos(unix_nanos),
                          absl::UTCTimeZone());
}

ExitCode List(Context& context) {
  const auto answers = context.AskAll<Records>(
      [](client::ControlClient& daemon) { return daemon.ListRecords(); });
  context.Print(
      Context::TargetsJson<Records>(
          answers,
          [](const Records& records, Json& entry) {
            entry["records"] = Json::array();
            for (const client::RecordInfo& record : records) {
              entry["records"].push_back(Json{
                  {"kind", record.kind},
                  {"subject", record.subject.empty() ? Json(nullptr)
                                                     : Json(record.subject)},
                  {"counter", record.counter},
                  {"current", record.current},
                  {"author", record.author},
                  {"signed", record.unix_nanos == 0
                                 ? Json(nullptr)
                                 : Json(TimeText(record.unix_nanos))},
                  {"summary", record.summary},
                  {"sha256", record.body_sha256}});
            }
          }),
      [&] {
        std::string out;
        for (const auto& answer : answers) {
          if (!answer.result.ok()) continue;
          if (!out.empty()) out += "\n";
          if (answers.size() > 1) absl::StrAppend(&out, answer.target, ":\n");
          Table table(
              {"KIND", ">COUNTER", "STATE", "ON", "SAYS", "AUTHOR", "SIGNED"});
          for (const client::RecordInfo& record : *answer.result) {
            table.Add({record.kind, absl::StrCat(record.counter),
                       record.current ? "in force" : "replaced",
                       record.subject.empty() ? "-" : Printable(record.subject),
                       Printable(record.summary), Printable(record.author),
                       TimeText(record.unix_nanos)});
          }
          out += table.ToString();
        }
        return out;
      });
  return context.Conclude(answers);
}

}  // namespace

void AddRecord(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = AddCommand(
      app, "record", "Orders to the network, as the nodes pass them on",
      "list --target gateway-07:7601");
  noun->require_subcommand(1);
  AddCommand(*noun, "list", "Orders that a node holds, and whose they are",
             "-o json")
      ->callback([&chosen] { chosen = List; });
}

}  // namespace dfl::cli
