#include "tests/support/daemon_process.h"

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/distributions.h"
#include "nlohmann/json.hpp"

namespace dfl::testing_support {

std::string Program(const std::string& name) {
  return absl::StrCat(DFL_PROGRAM_FOLDER, "/", name);
}

void WriteBlobs(const std::string& path, int64_t rows, int64_t features,
                int64_t classes, uint64_t seed) {
  Rng centres(17);  // the same for train and test
  std::vector<std::vector<double>> centre(classes);
  for (auto& c : centre) {
    for (int64_t f = 0; f < features; ++f) c.push_back(2 * Normal(centres));
  }
  Rng rng(seed);
  std::ofstream out(path);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = r % classes;
    for (int64_t f = 0; f < features; ++f) {
      out << centre[label][f] + Normal(rng) << ",";
    }
    out << label << "\n";
  }
}

namespace {

std::string SettingsOf(const DaemonProcess::Options& options) {
  const std::string base = absl::StrCat(options.folder, "/", options.name);
  std::string yaml = absl::StrCat(
      "name: ", options.name, "\nstate_dir: ", base, ".state",
      options.tls_folder.empty()
          ? "\nsecurity: insecure"
          : absl::StrCat("\nsecurity: tls\ntls: {folder: ", options.tls_folder,
                         "}"),
      "\npeers: [",
      absl::StrJoin(options.peers, ", ",
                    [](std::string* out, const std::string& peer) {
                      absl::StrAppend(out, "\"", peer, "\"");
                    }),
      "]\npeer:\n  listen: [\"127.0.0.1:", options.port,
      "\"]\ncontrol:\n  socket: ", base, ".sock\ncompute:\n  threads: 1\n");
  if (options.data_yaml.empty()) {
    absl::StrAppend(&yaml, "data:\n  format: csv\n  header: no\n",
                    "  label_column: -1\n  classes: 3\n  train: {paths: [",
                    options.train_csv, "]}\n");
    if (!options.test_csv.empty()) {
      absl::StrAppend(&yaml, "  test: {paths: [", options.test_csv, "]}\n");
    }
  } else {
    absl::StrAppend(&yaml, options.data_yaml);
  }
  return yaml + options.extra_yaml;
}

}  // namespace

DaemonProcess::DaemonProcess(Options options) : options_(std::move(options)) {
  Reconnect();
}

void DaemonProcess::Reconnect() {
  auto client = client::ControlClient::Connect(target());
  DFL_CHECK(client.ok());
  client_ = *std::move(client);  // connects with its first call
}

std::string DaemonProcess::target() const {
  return absl::StrCat("unix:", options_.folder, "/", options_.name, ".sock");
}

std::string DaemonProcess::Base() const {
  return absl::StrCat(options_.folder, "/", options_.name);
}

std::string DaemonProcess::ReadyFile() const {
  return absl::StrCat(Base(), ".", starts_, ".ready");
}

std::string DaemonProcess::log() const {
  return ReadFile(absl::StrCat(Base(), ".", starts_, ".log"));
}

bool DaemonProcess::Start() {
  Launch();
  return AwaitReady();
}

void DaemonProcess::Launch() {
  ++starts_;
  const std::string base = Base();
  const std::string ready_file = ReadyFile();
  WriteFile(base + ".yaml", options_.whole_yaml.empty() ? SettingsOf(options_)
                                                        : options_.whole_yaml);
  // A daemon of this name that the test had before may have left one.
  std::filesystem::remove(ready_file);

  Process::Options start;
  start.command = options_.wrapper;
  start.command.insert(start.command.end(),
                       {Program(options_.program), "--config", base + ".yaml",
                        "--ready-file", ready_file});
  start.command.insert(start.command.end(), options_.extra_flags.begin(),
                       options_.extra_flags.end());
  start.environment = options_.environment;
  start.environment.insert({"OPENBLAS_NUM_THREADS", "1"});
  start.stdout_file = absl::StrCat(base, ".", starts_, ".out");
  start.stderr_file = absl::StrCat(base, ".", starts_, ".log");
  process_ = std::make_unique<Process>(start);
}

bool DaemonProcess::AwaitReady(absl::Duration limit) {
  const std::string ready_file = ReadyFile();
  const bool ready = Eventually(limit, [&] {
    return !ReadFile(ready_file).empty() || !process_->running();
  });
  if (!ready || !process_->running()) return false;
  const auto content = nlohmann::json::parse(ReadFile(ready_file));
  peer_address_ = content.at("peer").at(0).get<std::string>();
  const std::string port = peer_address_.substr(peer_address_.rfind(':') + 1);
  return absl::SimpleAtoi(port, &options_.port);
}

std::optional<Exit> DaemonProcess::Stop() {
  // A server gives clients that are still connected some seconds to leave.
  Reconnect();
  process_->Signal(SIGTERM);
  return process_->Wait(absl::Seconds(10));
}

void DaemonProcess::Kill() {
  process_->Signal(SIGKILL);
  process_->Wait(absl::Seconds(10));
}

client::NodeStatus DaemonProcess::Status() {
  auto status = client_->Status();
  return status.ok() ? status->node : client::NodeStatus();
}

bool DaemonProcess::StatusBecomes(
    absl::Duration limit,
    const std::function<bool(const client::NodeStatus&)>& condition) {
  return Eventually(limit, [&] {
    auto status = client_->Status();
    return status.ok() && condition(status->node);
  });
}

}  // namespace dfl::testing_support
