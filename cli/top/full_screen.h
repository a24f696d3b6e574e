// The terminal as one screen, and keys as they are pressed.
#ifndef DFL_CLI_TOP_FULL_SCREEN_H_
#define DFL_CLI_TOP_FULL_SCREEN_H_

#include <termios.h>

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace dfl::cli {

struct ScreenSize {
  int width = 80;
  int height = 24;
};

class FullScreen {
 public:
  // Takes the terminal behind the descriptor `in`, whose output is `out`: it
  // shows another page, without a cursor, and gives keys at once and unseen.
  // Ctrl-C stays a signal; a program that catches it ends in the destructor.
  FullScreen(int in, std::ostream& out, bool color);
  // The terminal is as it was before.
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // As it is now: a person may change it at any time.
  ScreenSize Size() const;

  // Shows `lines`, from the top; line `title` stands out.
  void Draw(const std::vector<std::string>& lines, size_t title);

  // The next key, a character or a TopKey; nullopt: none within `wait`, or the
  // terminal is gone.
  std::optional<int> ReadKey(absl::Duration wait);

 private:
  bool Readable(absl::Duration wait) const;
  int AfterEscape();

  const int in_;
  std::ostream& out_;
  const bool color_;
  termios former_{};
  bool raw_ = false;
};

}  // namespace dfl::cli

#endif  // DFL_CLI_TOP_FULL_SCREEN_H_
