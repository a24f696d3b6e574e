#include "daemon/app/join_command.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/app/daemon.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/node_settings.h"
#include "daemon/enrol/join_token.h"
#include "daemon/enrol/joining.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"

namespace dfl::app {
namespace {

constexpr absl::string_view kHelp =
    "dfld join: gets this node's certificate with a join token, once.\n"
    "\n"
    "Usage: dfld join TOKEN --at HOST:PORT [--config FILE] [--conf-d DIR]\n"
    "                 [--KEY=VALUE]...\n"
    "\n"
    "  TOKEN              what `dflctl token create --node NAME` printed; "
    "\"-\"\n"
    "                     reads it from stdin, so that no list of processes\n"
    "                     shows it\n"
    "  --at HOST:PORT     where `dflctl token serve` runs\n"
    "  --tls.folder DIR   where ca.pem, cert.pem and key.pem will be\n"
    "  --name NAME        this node's name, if the settings do not say it\n"
    "\n"
    "The key is made here and stays here. The token's secret is sent only to\n"
    "the issuer that made it. Run it as the user that dfld runs as.\n"
    "\n"
    "Exit codes: 0 ok, 1 failed, 2 usage, 78 configuration.\n"
    "\n"
    "Example: dfld join dfl1.CggwMTIz... --at operator-1:7602\n";

int Fail(int code, const absl::Status& status) {
  std::cerr << "dfld: " << status.message() << "\n";
  return code;
}

// What is typed after "join", as the flags of a daemon.
struct Typed {
  std::string token;
  std::vector<std::string> flags;
};

Typed Sort(int argc, const char* const* argv) {
  Typed typed;
  typed.flags.emplace_back(argv[0]);
  for (int i = 2; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (typed.token.empty() &&
        (argument == "-" || !absl::StartsWith(argument, "-"))) {
      typed.token = std::string(argument);
    } else {
      const bool at = argument == "--at" || absl::StartsWith(argument, "--at=");
      typed.flags.push_back(at ? absl::StrCat("--join.at", argument.substr(4))
                               : std::string(argument));
      // The value of a flag is no token.
      if (absl::StartsWith(argument, "--") &&
          !absl::StrContains(argument, '=') && argument != "--help" &&
          i + 1 < argc) {
        typed.flags.emplace_back(argv[++i]);
      }
    }
  }
  return typed;
}

// The node's name, "" where only the host's name would stand for it.
std::string NameOf(const config::LoadedSettings& loaded) {
  const auto found = std::find_if(
      loaded.effective.begin(), loaded.effective.end(),
      [](const config::EffectiveSetting& s) { return s.key == "name"; });
  const bool is_default =
      found == loaded.effective.end() || found->origin == "default";
  return is_default ? "" : loaded.settings.name;
}

void PrintJoined(const enrol::Joined& joined,
                 const config::NodeSettings& settings) {
  for (const std::string& path : joined.written) std::cout << path << "\n";
  std::cerr << "dfld: this node is " << tls::ToUri(joined.identity)
            << "; its certificate is valid until "
            << tls::TimeText(joined.not_after) << "\n";
  if (settings.name != joined.identity.name) {
    std::cerr << "next: set `name: " << joined.identity.name
              << "` in its settings, or start it with --name="
              << joined.identity.name << "\n";
  } else {
    std::cerr << "next: start dfld\n";
  }
  if (geteuid() == 0) {
    std::cerr << "The files belong to root. For a dfld of another user: "
                 "`chown USER` them, and their folder\n";
  }
}

}  // namespace

bool IsJoinCommand(int argc, const char* const* argv) {
  return argc > 1 && absl::string_view(argv[1]) == "join";
}

int JoinMain(int argc, const char* const* argv) {
  Typed typed = Sort(argc, argv);
  std::vector<const char*> flags;
  for (const std::string& flag : typed.flags) flags.push_back(flag.c_str());
  const std::map<std::string, std::string> environment =
      config::ProcessEnvironment();
  const absl::StatusOr<config::DaemonCommandLine> line =
      config::ParseDaemonCommandLine(static_cast<int>(flags.size()),
                                     flags.data(), environment);
  if (!line.ok()) return Fail(kExitUsage, line.status());
  if (line->help) {
    std::cout << kHelp;
    return kExitOk;
  }
  const absl::StatusOr<config::SettingsSources> sources =
      config::GatherSources(*line, environment);
  if (!sources.ok()) return Fail(kExitConfig, sources.status());
  const absl::StatusOr<config::LoadedSettings> loaded =
      config::LoadNodeSettings(*sources);
  if (!loaded.ok()) return Fail(kExitConfig, loaded.status());
  const config::NodeSettings& settings = loaded->settings;

  if (typed.token.empty()) typed.token = settings.join.token;
  if (typed.token == "-") std::getline(std::cin, typed.token);
  enrol::JoinOptions options;
  const absl::StatusOr<enrol::JoinToken> token =
      enrol::ParseJoinToken(typed.token);
  if (!token.ok()) return Fail(kExitUsage, token.status());
  if (settings.join.at.empty()) {
    return Fail(kExitUsage,
                absl::InvalidArgumentError(
                    "--at is missing: the host:port where `dflctl token serve` "
                    "runs"));
  }
  options.token = *token;
  options.at = settings.join.at;
  options.node = NameOf(*loaded);
  options.paths = settings.tls.Paths();
  const absl::StatusOr<enrol::Joined> joined = enrol::Join(options);
  if (!joined.ok()) return Fail(kExitFailure, joined.status());
  PrintJoined(*joined, settings);
  return kExitOk;
}

}  // namespace dfl::app
