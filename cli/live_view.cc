#include "cli/live_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "cli/console.h"
#include "cli/status_table.h"

namespace dfl::cli {
namespace {

constexpr size_t kEvents = 6;
constexpr int kBarWidth = 20;
constexpr char kHideCursor[] = "\x1b[?25l";
constexpr char kShowCursor[] = "\x1b[?25h";
constexpr char kEraseBelow[] = "\x1b[J";

// The first `width` characters of UTF-8 text.
std::string Cut(const std::string& text, int width) {
  int seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (seen++ == width) return text.substr(0, i);
  }
  return text;
}

std::string Progress(const client::NodeStatus& node) {
  // Of the limit that ends the run first.
  double share = -1;
  const auto take = [&share](double done, double limit) {
    if (limit > 0) share = std::max(share, done / limit);
  };
  take(static_cast<double>(node.step), static_cast<double>(node.stop_steps));
  take(static_cast<double>(node.round), static_cast<double>(node.stop_rounds));
  take(node.epochs, node.stop_epochs);
  return share < 0 ? "-" : ProgressBar(share, kBarWidth);
}

std::string Speed(const client::NodeStatus& node) {
  return node.phase == client::Phase::kTraining
             ? absl::StrCat(Fixed(node.steps_per_second, 1), "/s")
             : "-";
}

}  // namespace

std::string EventLine(const std::string& node, const client::Event& event) {
  const std::string at = absl::FormatTime(
      "%H:%M:%S", absl::FromUnixNanos(event.unix_nanos), absl::LocalTimeZone());
  return Printable(absl::StrCat(at, "  ", node, "  ", event.text));
}

LiveView::LiveView(std::ostream& out, std::vector<std::string> targets,
                   bool color)
    : out_(out),
      targets_(std::move(targets)),
      color_(color),
      rows_(targets_.size()) {
  out_ << kHideCursor << std::flush;
}

LiveView::~LiveView() {
  // Wipes the ^C that the terminal echoed.
  out_ << "\r\x1b[K" << kShowCursor << std::flush;
}

void LiveView::Take(size_t index, const client::WatchUpdate& update) {
  rows_[index].status = update.status;
  rows_[index].error = absl::OkStatus();
  for (const client::Event& event : update.events) {
    events_.push_back(EventLine(update.status.node.node, event));
    if (events_.size() > kEvents) events_.pop_front();
  }
}

void LiveView::Take(size_t index, const absl::Status& status) {
  rows_[index].error = status;
}

std::vector<std::string> LiveView::Lines() const {
  Table table({"NODE", "PHASE", ">STEP", ">ROUND", "PROGRESS", ">SPEED",
               ">LOSS", ">SCORE", "ALGORITHM", "TOPOLOGY", "PLAN",
               ">NEIGHBOURS", ">SENT", ">RECEIVED"});
  std::vector<std::string> notes;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (!row.status.has_value()) {
      table.Add({targets_[i], row.error.ok() ? "..." : "unreachable"});
    } else {
      const client::NodeStatus& node = row.status->node;
      std::vector<std::string> cells = StatusRow(*row.status);
      if (!row.error.ok()) cells[1] = "unreachable";
      cells.insert(cells.begin() + 4, {Progress(node), Speed(node)});
      table.Add(std::move(cells));
      for (std::string& note : StatusNotes(*row.status)) {
        notes.push_back(Printable(note));
      }
    }
    if (!row.error.ok()) {
      notes.push_back(Printable(std::string(row.error.message())));
    }
  }
  std::vector<std::string> lines =
      absl::StrSplit(absl::StripSuffix(table.ToString(), "\n"), '\n');
  if (!notes.empty()) lines.push_back("");
  for (const std::string& note : notes) lines.push_back("! " + note);
  if (!events_.empty()) lines.push_back("");
  for (const std::string& event : events_) lines.push_back(event);
  return lines;
}

void LiveView::Draw(int width) {
  const std::vector<std::string> lines = Lines();
  std::string picture;
  if (drawn_ > 0) absl::StrAppend(&picture, "\x1b[", drawn_, "A");
  absl::StrAppend(&picture, "\r", kEraseBelow);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string text = Cut(lines[i], width);
    const bool title = color_ && i == 0;
    absl::StrAppend(&picture, title ? "\x1b[1m" : "", text,
                    title ? "\x1b[0m" : "", "\n");
  }
  drawn_ = lines.size();
  out_ << picture << std::flush;
}

}  // namespace dfl::cli
