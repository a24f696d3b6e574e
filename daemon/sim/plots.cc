#include "daemon/sim/plots.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/status_macros.h"
#include "daemon/sim/extra_metrics.h"

extern char** environ;

namespace dfl::sim {
namespace {

constexpr char kScriptFile[] = "plot.gp";
constexpr char kLogFile[] = "plot.log";

struct Axis {
  const char* label;
  int column;
};
constexpr Axis kSteps = {"steps", 1};
constexpr Axis kTime = {"virtual time (s)", 2};
constexpr Axis kBytes = {"sent (MB)", 3};

struct Figure {
  std::string file;
  std::string label;
  std::function<std::optional<double>(const MetricsRow&)> value;
  std::vector<Axis> against;
  // Over decades where all values allow it, or as it is.
  bool logarithmic;
  const char* key;  // where the runs' names stand
};

// Of metrics that were asked for: that of one of them.
Figure ExtraFigure(const std::string& metric) {
  const auto value = [metric](const MetricsRow& row) -> std::optional<double> {
    const auto found = row.extra.find(metric);
    if (found == row.extra.end()) return std::nullopt;
    return found->second;
  };
  return {metric, ExtraMetricLabel(metric),
          value,  {kSteps, kTime, kBytes},
          true,   "top right"};
}

// What may be missing is drawn where a run has it.
std::vector<Figure> Figures(absl::Span<const RecordedRun> runs) {
  using Value = std::optional<double>;
  std::vector<Figure> figures = {
      {"loss",
       "f(mean w)",
       [](const MetricsRow& row) -> Value { return row.loss_mean_model; },
       {kSteps, kTime, kBytes},
       true,
       "top right"},
      {"consensus",
       "mean |w_i - mean w|^2",
       [](const MetricsRow& row) -> Value { return row.consensus_error; },
       {kSteps, kTime, kBytes},
       true,
       "top right"},
      {"bytes",
       "sent (MB)",
       [](const MetricsRow& row) -> Value {
         return static_cast<double>(row.bytes_sent) / 1e6;
       },
       {kSteps, kTime},
       false,
       "top left"},
      {"accuracy",
       "accuracy, mean over nodes",
       [](const MetricsRow& row) -> Value { return row.accuracy; },
       {kSteps, kTime, kBytes},
       false,
       "bottom right"},
      {"drift",
       "|sum of trackers|",
       [](const MetricsRow& row) -> Value { return row.mass_drift; },
       {kSteps, kTime, kBytes},
       true,
       "top right"},
      {"sparsity",
       "share of zeros, mean over nodes",
       [](const MetricsRow& row) -> Value { return row.sparsity; },
       {kSteps, kTime, kBytes},
       false,
       "bottom right"},
      {"phi",
       "f(mean w) + h(mean w)",
       [](const MetricsRow& row) -> Value { return row.phi_mean_model; },
       {kSteps, kTime, kBytes},
       true,
       "top right"},
  };
  std::set<std::string> extra;
  for (const RecordedRun& run : runs) {
    for (const MetricsRow& row : run.rows) {
      for (const auto& [metric, value] : row.extra) extra.insert(metric);
    }
  }
  for (const std::string& metric : extra) {
    figures.push_back(ExtraFigure(metric));
  }
  return figures;
}

bool Has(const RecordedRun& run, const Figure& figure) {
  return std::any_of(run.rows.begin(), run.rows.end(),
                     [&figure](const MetricsRow& row) {
                       return figure.value(row).has_value();
                     });
}

// A text between single quotes, with nothing that a terminal would interpret.
std::string Quoted(const std::string& text) {
  return absl::StrCat(
      "'", absl::StrReplaceAll(text, {{"'", "''"}, {"\n", " "}}), "'");
}

// step, seconds, megabytes, and the value of each figure.
std::string DataBlock(const RecordedRun& run,
                      const std::vector<Figure>& figures) {
  std::string out;
  for (const MetricsRow& row : run.rows) {
    absl::StrAppendFormat(&out, "%d %.9g %.9g", row.step, row.time_s,
                          static_cast<double>(row.bytes_sent) / 1e6);
    for (const Figure& figure : figures) {
      const std::optional<double> value = figure.value(row);
      out += value.has_value() ? absl::StrFormat(" %.9g", *value) : " ?";
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
      const double value = figure.value(row).value_or(0);
      // At the start all models are equal: 0, which is left out.
      if (value < 0) return false;
      any = any || value > 0;
    }
  }
  return any;
}

// One picture; `column` holds the figure's values.
std::string Picture(absl::Span<const RecordedRun> runs, const Figure& figure,
                    int column, const std::string& ending) {
  const bool decades = figure.logarithmic && AllPositive(runs, figure);
  std::string out = absl::StrCat(
      "set output '", figure.file, ".", ending, "'\n",
      decades ? "set logscale y\n" : "unset logscale y\n", "set format y '",
      figure.logarithmic ? "%.0e" : "%g", "'\nset key ", figure.key,
      " noenhanced\nset multiplot layout 1,", figure.against.size(),
      "\nset ylabel '", figure.label, "'\n");
  for (const Axis& axis : figure.against) {
    absl::StrAppend(&out, "set xlabel '", axis.label, "'\nplot ");
    const char* comma = "";
    for (size_t i = 0; i < runs.size(); ++i) {
      if (!Has(runs[i], figure)) continue;
      absl::StrAppend(&out, comma, "$run", i, " using ", axis.column, ":",
                      column, " with lines linewidth 2 title ",
                      Quoted(runs[i].title));
      comma = ", \\\n     ";
    }
    out += "\n";
  }
  return absl::StrCat(out, "unset multiplot\nunset output\n");
}

}  // namespace

std::string PlotScript(absl::Span<const RecordedRun> runs) {
  std::string out =
      "# Drawn again by: gnuplot plot.gp\n"
      "set encoding utf8\nset grid back linecolor rgb '#dddddd'\n"
      "set border linecolor rgb '#888888'\nset datafile missing '?'\n"
      "set linetype cycle 8\n";
  const std::vector<Figure> figures = Figures(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    absl::StrAppend(&out, "$run", i, " << END_OF_RUN\n",
                    DataBlock(runs[i], figures), "END_OF_RUN\n");
  }
  const std::pair<const char*, const char*> terminals[] = {
      {"pngcairo size 1500,460 font 'Sans,12'", "png"},
      {"svg size 1500,460 font 'Sans,12'", "svg"}};
  for (const auto& [terminal, ending] : terminals) {
    absl::StrAppend(&out, "set terminal ", terminal, "\n");
    int column = 4;
    for (const Figure& figure : figures) {
      const bool any = std::any_of(
          runs.begin(), runs.end(),
          [&figure](const RecordedRun& run) { return Has(run, figure); });
      if (any) out += Picture(runs, figure, column, ending);
      ++column;
    }
  }
  return out;
}

absl::Status DrawPlots(const std::string& folder,
                       absl::Span<const RecordedRun> runs,
                       const std::string& gnuplot) {
  DFL_RETURN_IF_ERROR(
      AtomicFile::Write((std::filesystem::path(folder) / kScriptFile).string(),
                        PlotScript(runs)));
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
