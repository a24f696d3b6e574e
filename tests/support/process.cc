#include "tests/support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"

extern char** environ;

namespace dfl::testing_support {
namespace {

// The child's argv or envp: pointers into strings that outlive them.
std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Process::Process(const Options& options) {
  std::vector<std::string> arguments = options.command;
  std::vector<std::string> variables;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    const std::string name = entry.substr(0, entry.find('='));
    if (options.environment.count(name) == 0) variables.push_back(entry);
  }
  for (const auto& [name, value] : options.environment) {
    variables.push_back(absl::StrCat(name, "=", value));
  }
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(variables);
  const pid_t parent = getpid();
  pid_ = fork();
  DFL_CHECK(pid_ >= 0);
  if (pid_ != 0) return;
  // The child: only calls that are safe after fork.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int in = open("/dev/null", O_RDONLY);
  dup2(in, 0);
  const auto redirect = [](const std::string& path, int fd) {
    if (path.empty()) return;
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0) dup2(file, fd);
  };
  redirect(options.stdout_file, 1);
  redirect(options.stderr_file, 2);
  execvpe(argv[0], argv.data(), envp.data());
  _exit(127);
}

Process::~Process() {
  if (!exit_) {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    Reap(/*block=*/true);
  }
}

void Process::Reap(bool block) {
  if (exit_) return;
  int status = 0;
  if (waitpid(pid_, &status, block ? 0 : WNOHANG) != pid_) return;
  exit_ = Exit();
  if (WIFEXITED(status)) exit_->code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit_->signal = WTERMSIG(status);
}

bool Process::running() {
  Reap(/*block=*/false);
  return !exit_;
}

void Process::Signal(int signal) {
  if (running()) kill(pid_, signal);
}

std::optional<Exit> Process::Wait(absl::Duration limit) {
  Eventually(limit, [this] { return !running(); });
  return exit_;
}

int64_t Process::PeakResidentBytes() const {
  std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
  std::string word;
  while (status >> word) {
    if (word == "VmHWM:") {
      int64_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

bool Process::ForgetPeak() const {
  std::ofstream file(absl::StrCat("/proc/", pid_, "/clear_refs"));
  file << "5" << std::flush;  // see proc(5)
  return file.good();
}

std::vector<std::string> AsNobody(std::vector<std::string> command) {
  const std::vector<std::string> nobody = {
      "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"};
  command.insert(command.begin(), nobody.begin(), nobody.end());
  return command;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out << content;
  out.close();
  DFL_CHECK(out.good());
}

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  std::string pattern =
      absl::StrCat(base != nullptr ? base : "/tmp", "/dfl-test-XXXXXX");
  DFL_CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

Outcome RunCommand(const std::vector<std::string>& command,
                   const std::map<std::string, std::string>& environment,
                   absl::Duration limit) {
  const TemporaryFolder folder;
  Process::Options options;
  options.command = command;
  options.environment = environment;
  options.stdout_file = folder.File("out");
  options.stderr_file = folder.File("err");
  Process process(options);
  const std::optional<Exit> ended = process.Wait(limit);
  Outcome outcome;
  outcome.exit_code = ended ? ended->code : -1;
  outcome.out = ReadFile(options.stdout_file);
  outcome.err = ReadFile(options.stderr_file);
  if (!ended) {
    outcome.err += "\n(still running after the limit, killed)";
  }
  return outcome;
}

void SleepBetweenLooks() {
  const timespec wait = {0, 20'000'000};
  nanosleep(&wait, nullptr);
}

absl::Time SteadyNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace dfl::testing_support
