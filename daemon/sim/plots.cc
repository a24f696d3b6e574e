#include "daemon/sim/plots.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "daemon/base/status_macros.h"
#include "daemon/console/atomic_file.h"

extern char** environ;

namespace dfl::sim {
namespace {

constexpr char kScriptFile[] = "plot.gp";
constexpr char kLogFile[] = "plot.log";

struct Figure {
  const char* file;
  const char* label;
  double MetricsRow::* value;
};
constexpr Figure kFigures[] = {
    {"loss", "f(mean w)", &MetricsRow::loss_mean_model},
    {"consensus", "mean |w_i - mean w|^2", &MetricsRow::consensus_error},
};

// A text between single quotes, with nothing that a terminal would interpret.
std::string Quoted(const std::string& text) {
  return absl::StrCat(
      "'", absl::StrReplaceAll(text, {{"'", "''"}, {"\n", " "}}), "'");
}

// step, seconds, megabytes, and the value of each figure.
std::string DataBlock(const RecordedRun& run) {
  std::string out;
  for (const MetricsRow& row : run.rows) {
    absl::StrAppendFormat(&out, "%d %.9g %.9g", row.step, row.time_s,
                          static_cast<double>(row.bytes_sent) / 1e6);
    for (const Figure& figure : kFigures) {
      absl::StrAppendFormat(&out, " %.9g", row.*figure.value);
    }
    out += "\n";
  }
  return out;
}

// A logarithmic axis takes positive values only.
bool AllPositive(absl::Span<const RecordedRun> runs, const Figure& figure) {
  bool any = false;
  for (const RecordedRun& run : runs) {
    for (const MetricsRow& row : run.rows) {
      // At the start all models are equal: 0, which is left out.
      if (row.*figure.value < 0) return false;
      any = any || row.*figure.value > 0;
    }
  }
  return any;
}

}  // namespace

std::string PlotScript(absl::Span<const RecordedRun> runs) {
  std::string out =
      "# Drawn again by: gnuplot plot.gp\n"
      "set encoding utf8\nset grid back linecolor rgb '#dddddd'\n"
      "set border linecolor rgb '#888888'\nset format y '%.0e'\n"
      "set key top right noenhanced\nset linetype cycle 8\n";
  for (size_t i = 0; i < runs.size(); ++i) {
    absl::StrAppend(&out, "$run", i, " << END_OF_RUN\n", DataBlock(runs[i]),
                    "END_OF_RUN\n");
  }
  const std::pair<const char*, int> axes[] = {
      {"steps", 1}, {"virtual time (s)", 2}, {"sent (MB)", 3}};
  const std::pair<const char*, const char*> terminals[] = {
      {"pngcairo size 1500,460 font 'Sans,12'", "png"},
      {"svg size 1500,460 font 'Sans,12'", "svg"}};
  for (const auto& [terminal, ending] : terminals) {
    int column = 4;
    for (const Figure& figure : kFigures) {
      absl::StrAppend(
          &out, "set terminal ", terminal, "\nset output '", figure.file, ".",
          ending, "'\n",
          AllPositive(runs, figure) ? "set logscale y\n" : "unset logscale y\n",
          "set multiplot layout 1,3\nset ylabel '", figure.label, "'\n");
      for (const auto& [label, x] : axes) {
        absl::StrAppend(&out, "set xlabel '", label, "'\nplot ");
        for (size_t i = 0; i < runs.size(); ++i) {
          absl::StrAppend(
              &out, i == 0 ? "" : ", \\\n     ", "$run", i, " using ", x, ":",
              column, " with lines linewidth 2 title ", Quoted(runs[i].title));
        }
        out += "\n";
      }
      out += "unset multiplot\nunset output\n";
      ++column;
    }
  }
  return out;
}

absl::Status DrawPlots(const std::string& folder,
                       absl::Span<const RecordedRun> runs,
                       const std::string& gnuplot) {
  {
    DFL_ASSIGN_OR_RETURN(
        const std::unique_ptr<console::AtomicFile> script,
        console::AtomicFile::Create(
            (std::filesystem::path(folder) / kScriptFile).string()));
    DFL_RETURN_IF_ERROR(script->Append(PlotScript(runs)));
    DFL_RETURN_IF_ERROR(script->Commit());
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, kLogFile,
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::string program = gnuplot;
  std::string script = kScriptFile;
  char* arguments[] = {program.data(), script.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, program.c_str(), &actions, nullptr,
                                 arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return absl::NotFoundError(absl::StrCat(
        gnuplot,
        " is not installed, so there are no plots; install gnuplot "
        "and run `gnuplot plot.gp` in ",
        folder));
  }
  if (error != 0) {
    return absl::InternalError(
        absl::StrCat("starting ", gnuplot, ": ", std::strerror(error)));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(
        absl::StrCat(gnuplot, " failed; ", folder, "/", kLogFile, " says why"));
  }
  std::error_code ignored;
  std::filesystem::remove(std::filesystem::path(folder) / kLogFile, ignored);
  return absl::OkStatus();
}

}  // namespace dfl::sim
