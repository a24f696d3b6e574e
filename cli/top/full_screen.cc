#include "cli/top/full_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "cli/top/top_view.h"

namespace dfl::cli {
namespace {

// Another page, so that what was there before comes back.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
// An escape sequence comes in one piece; a person who presses Esc waits so
// long.
constexpr absl::Duration kSequence = absl::Milliseconds(30);

}  // namespace

FullScreen::FullScreen(int in, std::ostream& out, bool color)
    : in_(in), out_(out), color_(color) {
  if (tcgetattr(in_, &former_) == 0) {
    termios raw = former_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    // Stopped, it would leave the page as it is.
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw_ = tcsetattr(in_, TCSANOW, &raw) == 0;
  }
  out_ << kEnter << std::flush;
}

FullScreen::~FullScreen() {
  out_ << kLeave << std::flush;
  if (raw_) tcsetattr(in_, TCSAFLUSH, &former_);
}

ScreenSize FullScreen::Size() const {
  ScreenSize size;
  winsize window{};
  if (ioctl(in_, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 &&
      window.ws_row > 0) {
    size.width = window.ws_col;
    size.height = window.ws_row;
  }
  return size;
}

void FullScreen::Draw(const std::vector<std::string>& lines, size_t title) {
  std::string picture = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool stands_out = color_ && i == title;
    absl::StrAppend(&picture, stands_out ? "\x1b[7m" : "", lines[i],
                    stands_out ? "\x1b[0m" : "", "\x1b[K",
                    i + 1 < lines.size() ? "\r\n" : "");
  }
  picture += "\x1b[J";
  out_ << picture << std::flush;
}

bool FullScreen::Readable(absl::Duration wait) const {
  pollfd input = {in_, POLLIN, 0};
  return poll(&input, 1, static_cast<int>(absl::ToInt64Milliseconds(wait))) ==
             1 &&
         (input.revents & POLLIN) != 0;
}

std::optional<int> FullScreen::ReadKey(absl::Duration wait) {
  if (!Readable(wait)) return std::nullopt;
  unsigned char byte = 0;
  if (read(in_, &byte, 1) != 1) return std::nullopt;
  switch (byte) {
    case 0x1b:
      return AfterEscape();
    case 0x7f:
    case 0x08:
      return kKeyBackspace;
    case '\r':
    case '\n':
      return kKeyEnter;
    default:
      return byte;
  }
}

// "[A" is an arrow, "[5~" a page; what is not known counts as nothing.
int FullScreen::AfterEscape() {
  std::string sequence;
  unsigned char byte = 0;
  while (sequence.size() < 8 && Readable(kSequence) &&
         read(in_, &byte, 1) == 1) {
    sequence += static_cast<char>(byte);
    const bool begins = sequence.size() == 1 && (byte == '[' || byte == 'O');
    if (!begins && byte >= 0x40 && byte <= 0x7e) break;
  }
  if (sequence.empty()) return kKeyEscape;
  if (sequence == "[A" || sequence == "OA") return kKeyUp;
  if (sequence == "[B" || sequence == "OB") return kKeyDown;
  if (sequence == "[5~") return kKeyPageUp;
  if (sequence == "[6~") return kKeyPageDown;
  return 0;
}

}  // namespace dfl::cli
