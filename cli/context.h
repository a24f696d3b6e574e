// What every command uses: global options, targets and output.
#ifndef DFL_CLI_CONTEXT_H_
#define DFL_CLI_CONTEXT_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/console.h"
#include "cli/exit_codes.h"
#include "client/control_client.h"
#include "daemon/tls/credentials.h"

namespace dfl::cli {

// How a result is printed. kWide is kTable with more columns; kJsonLines is
// kJson with one line for each item of a list.
enum class Output { kTable, kWide, kJson, kJsonLines, kYaml };

struct Globals {
  std::vector<std::string> targets;
  std::string targets_file;
  std::string output = "table";
  std::string timeout = "10s";
  bool no_color = false;
  std::string identity;
  bool insecure = false;
  std::string context;
  // The command speaks to no daemon: contexts are not looked up.
  bool offline = false;
};

// "500ms", "10s"; "10" is 10 s.
// Errors: INVALID_ARGUMENT "--timeout: ..." for what is no time above zero.
absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text);

// Which of several ways to name targets and identity wins, for --help.
const char* ContextHelp();

// What one daemon answered.
template <typename T>
struct Answer {
  std::string target;
  absl::StatusOr<T> result;
};

class Context {
 public:
  // Resolves the global options.
  // Errors: INVALID_ARGUMENT for a bad option (exit 2); NOT_FOUND when the file
  // of targets does not exist; as Contexts::Load.
  static absl::StatusOr<std::unique_ptr<Context>> Create(const Globals& globals,
                                                         Io& io);

  Io& io() { return io_; }
  const Globals& globals() const { return globals_; }
  Output output() const { return output_; }
  // Whether text is wanted, and whether with all columns.
  bool text() const { return output_ == Output::kTable || wide(); }
  bool wide() const { return output_ == Output::kWide; }
  absl::Duration timeout() const { return timeout_; }
  bool color() const { return color_; }
  const std::vector<std::string>& targets() const { return targets_; }

  // Who the caller is to daemons and in signatures, read at each call.
  // Errors: as FindIdentityFolder and LoadIdentity.
  absl::StatusOr<tls::Credentials> Identity() const;

  // Prints `line` on stderr as "dflctl: LINE".
  void Say(absl::string_view line);
  // The same with "warning: "; what was warned of once is not said again.
  void Warn(absl::string_view line);

  // Prints the document: `json` as JSON or YAML, or `table()`. As lines of JSON
  // a document that lists targets, members, events, contexts or algorithms is a
  // line for each of them, any other one line.
  void Print(const Json& json, const std::function<std::string()>& table);

  // Prints the error on stderr and returns its exit code.
  ExitCode Fail(const absl::Status& status);
  ExitCode Usage(const absl::Status& status);

  // Calls `ask` for every target at once; answers are in the targets' order.
  template <typename T>
  std::vector<Answer<T>> AskAll(
      const std::function<absl::StatusOr<T>(client::ControlClient&)>& ask) {
    std::vector<Answer<T>> answers(targets_.size(),
                                   {"", absl::UnknownError("not asked")});
    ForEachTarget([&](size_t i, client::ControlClient& daemon) {
      answers[i].target = targets_[i];
      answers[i].result = ask(daemon);
    });
    return answers;
  }

  // {"targets": [...]} of the answers; `fill` adds the content of a good one.
  template <typename T>
  static Json TargetsJson(const std::vector<Answer<T>>& answers,
                          const std::function<void(const T&, Json&)>& fill) {
    Json list = Json::array();
    for (const Answer<T>& answer : answers) {
      Json entry = TargetJson(answer.target, answer.result.status());
      if (answer.result.ok()) fill(*answer.result, entry);
      list.push_back(std::move(entry));
    }
    return Json{{"targets", std::move(list)}};
  }
  static Json TargetJson(const std::string& target, const absl::Status& status);
  // {"code": "unreachable", "exit_code": 3, "message": "..."} of a failure.
  static Json ErrorJson(const absl::Status& status);

  // Prints each failure on stderr. Returns 0 if all targets succeeded, 6 if
  // some did, and the code of the first failure if none did.
  template <typename T>
  ExitCode Conclude(const std::vector<Answer<T>>& answers) {
    std::vector<std::pair<std::string, absl::Status>> ends;
    for (const Answer<T>& answer : answers) {
      ends.emplace_back(answer.target, answer.result.status());
    }
    return ConcludeAll(ends);
  }
  ExitCode ConcludeAll(
      const std::vector<std::pair<std::string, absl::Status>>& ends);

  // The daemon of a command that takes one target only.
  // Errors: INVALID_ARGUMENT when several targets are given.
  absl::StatusOr<client::ControlClient*> OneTarget();

  // The client of target `i`. It lives as long as this object.
  client::ControlClient& Client(size_t i) { return *clients_[i]; }

 private:
  Context(const Globals& globals, Io& io) : globals_(globals), io_(io) {}
  void ForEachTarget(
      const std::function<void(size_t, client::ControlClient&)>& call);

  const Globals globals_;
  Io& io_;
  Output output_ = Output::kTable;
  absl::Duration timeout_;
  bool color_ = false;
  std::string identity_;
  std::set<std::string> warned_;
  std::vector<std::string> targets_;
  std::vector<std::unique_ptr<client::ControlClient>> clients_;
};

}  // namespace dfl::cli

#endif  // DFL_CLI_CONTEXT_H_
