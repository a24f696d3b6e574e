#include "cli/graph_picture.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/console.h"
#include "daemon/base/status_macros.h"

namespace dfl::cli {
namespace {

constexpr int64_t kMostOnEllipse = 24;
constexpr int kRows = 23;
constexpr int kColumns = 54;  // without the names

using Edges = std::vector<std::pair<int64_t, int64_t>>;

Edges EdgesOf(const core::PlanTopology& topology) {
  return topology.directed ? topology.digraph.Arcs() : topology.graph.Edges();
}

struct Point {
  int x = 0;
  int y = 0;
};

// Node i of n, clockwise from the top.
Point PlaceOf(int64_t i, int64_t n) {
  const double angle =
      2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n) -
      std::numbers::pi / 2;
  return {
      static_cast<int>(
          std::lround((kColumns - 1) / 2.0 * (1 + std::cos(angle)))),
      static_cast<int>(std::lround((kRows - 1) / 2.0 * (1 + std::sin(angle))))};
}

// The head of an edge that comes from `from`.
char Head(Point from, Point to) {
  const int right = to.x - from.x;
  const int down = to.y - from.y;
  // A character is about twice as high as wide.
  if (std::abs(right) >= 2 * std::abs(down)) return right > 0 ? '>' : '<';
  return down > 0 ? 'v' : '^';
}

class Canvas {
 public:
  explicit Canvas(int margin)
      : margin_(margin),
        rows_(kRows,
              std::string(static_cast<size_t>(kColumns + 2 * margin), ' ')) {}

  void Draw(Point from, Point to, bool directed) {
    const int steps =
        std::max(std::abs(to.x - from.x), std::abs(to.y - from.y));
    for (int k = 1; k < steps; ++k) {
      const double share = static_cast<double>(k) / steps;
      char& cell =
          At({from.x + static_cast<int>(std::lround(share * (to.x - from.x))),
              from.y + static_cast<int>(std::lround(share * (to.y - from.y)))});
      const bool head = directed && k == std::max(1, steps - 2);
      if (head) {
        cell = Head(from, to);
      } else if (cell == ' ') {
        cell = '.';
      }
    }
  }

  // The name stands outside, on the side of the node, and a space away from it
  // that no edge fills.
  void Name(Point at, const std::string& name) {
    const bool left = at.x < kColumns / 2;
    Write(left ? Point{at.x - static_cast<int>(name.size()) - 1, at.y} : at,
          left ? name + " o" : "o " + name);
  }

  std::string ToString() const {
    std::string out;
    for (std::string row : rows_) {
      row.erase(row.find_last_not_of(' ') + 1);
      absl::StrAppend(&out, row, "\n");
    }
    return out;
  }

 private:
  void Write(Point from, const std::string& text) {
    for (size_t k = 0; k < text.size(); ++k) {
      const int x = from.x + static_cast<int>(k);
      if (x >= -margin_ && x < kColumns + margin_) At({x, from.y}) = text[k];
    }
  }
  char& At(Point at) {
    return rows_[static_cast<size_t>(at.y)]
                [static_cast<size_t>(at.x + margin_)];
  }

  const int margin_;
  std::vector<std::string> rows_;
};

std::string Matrix(const core::PlanTopology& topology) {
  const size_t n = topology.members.size();
  size_t width = 0;
  for (const NodeId& member : topology.members) {
    width = std::max(width, member.name().size());
  }
  std::vector<std::string> rows(n, std::string(n, '.'));
  for (const auto& [a, b] : EdgesOf(topology)) {
    rows[static_cast<size_t>(a)][static_cast<size_t>(b)] = '#';
    if (!topology.directed) {
      rows[static_cast<size_t>(b)][static_cast<size_t>(a)] = '#';
    }
  }
  std::string out;
  for (size_t i = 0; i < n; ++i) {
    const std::string name = Printable(topology.members[i].name());
    absl::StrAppend(&out, name, std::string(width - name.size() + 2, ' '),
                    rows[i], "\n");
  }
  return out;
}

std::string Quoted(const std::string& text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

const char* LayoutOf(const std::string& kind) {
  for (const char* round : {"complete", "ring", "k-nearest", "hashed"}) {
    if (kind == round) return "circo";
  }
  return kind == "star" ? "twopi" : "neato";
}

// A file in memory for a process's input or output.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("dflctl", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }

  // At the begin of the file, which is left there.
  bool Write(const std::string& text) {
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t wrote = pwrite(fd_, text.data() + done, text.size() - done,
                                   static_cast<off_t>(done));
      if (wrote <= 0) return false;
      done += static_cast<size_t>(wrote);
    }
    return true;
  }

  std::string ReadAll() const {
    std::string text;
    char buffer[1 << 16];
    for (;;) {
      const ssize_t got =
          pread(fd_, buffer, sizeof(buffer), static_cast<off_t>(text.size()));
      if (got <= 0) return text;
      text.append(buffer, static_cast<size_t>(got));
    }
  }

 private:
  const int fd_;
};

}  // namespace

std::string GraphText(const console::TopologyReport& report) {
  const core::PlanTopology& topology = report.topology;
  const auto n = static_cast<int64_t>(topology.members.size());
  if (n > kMostOnEllipse) return Matrix(topology);
  size_t longest = 0;
  for (const NodeId& member : topology.members) {
    longest = std::max(longest, member.name().size());
  }
  Canvas canvas(static_cast<int>(longest) + 2);
  for (const auto& [a, b] : EdgesOf(topology)) {
    canvas.Draw(PlaceOf(a, n), PlaceOf(b, n), topology.directed);
  }
  for (int64_t i = 0; i < n; ++i) {
    canvas.Name(PlaceOf(i, n),
                Printable(topology.members[static_cast<size_t>(i)].name()));
  }
  return canvas.ToString();
}

std::string GraphDot(const console::TopologyReport& report,
                     const std::string& kind) {
  const core::PlanTopology& topology = report.topology;
  const bool directed = topology.directed;
  std::string out = absl::StrCat(
      directed ? "digraph" : "graph", " topology {\n  layout=", LayoutOf(kind),
      ";\n  overlap=false;\n  splines=true;\n  fontname=\"sans-serif\";\n"
      "  label=",
      Quoted(absl::StrCat(kind, " of ", topology.members.size(), ", ",
                          report.edges, directed ? " directed edges" : " edges",
                          ", ", report.connected ? "" : "not ",
                          directed ? "strongly " : "", "connected")),
      ";\n  node [shape=box, style=\"rounded,filled\", "
      "fillcolor=\"#dbe9f6\", color=\"#3b6ea5\", fontname=\"sans-serif\"];\n"
      "  edge [color=\"#777777\"];\n");
  for (const NodeId& member : topology.members) {
    absl::StrAppend(&out, "  ", Quoted(member.name()), ";\n");
  }
  for (const auto& [a, b] : EdgesOf(topology)) {
    const auto i = static_cast<size_t>(a);
    const auto j = static_cast<size_t>(b);
    absl::StrAppend(&out, "  ", Quoted(topology.members[i].name()),
                    directed ? " -> " : " -- ",
                    Quoted(topology.members[j].name()));
    if (!directed) {
      // Seen when the pointer rests on the edge of an SVG.
      absl::StrAppend(&out, " [tooltip=\"weight ",
                      Fixed(topology.weights[i][j], 3), "\"]");
    }
    out += ";\n";
  }
  return out + "}\n";
}

absl::StatusOr<std::string> DrawGraph(const std::string& dot,
                                      const std::string& format,
                                      const std::string& program) {
  MemoryFile input;
  const MemoryFile picture;
  const MemoryFile words;
  if (!input.Write(dot)) {
    return absl::InternalError("there is no memory for the picture");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.fd(), 0);
  posix_spawn_file_actions_adddup2(&actions, picture.fd(), 1);
  posix_spawn_file_actions_adddup2(&actions, words.fd(), 2);
  std::string name = program;
  std::string option = absl::StrCat("-T", format);
  char* arguments[] = {name.data(), option.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, program.c_str(), &actions, nullptr,
                                 arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return absl::NotFoundError(absl::StrCat(
        "Graphviz draws the picture, and there is no program \"", program,
        "\"; install the package graphviz (apt install graphviz), or draw in "
        "characters with --draw"));
  }
  if (error != 0) {
    return absl::InternalError(
        absl::StrCat("starting ", program, ": ", std::strerror(error)));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(absl::StrCat(
        program, " failed: ", absl::StripAsciiWhitespace(words.ReadAll())));
  }
  return picture.ReadAll();
}

}  // namespace dfl::cli
