// A headless Chromium of a test, driven through chromedriver (WebDriver). Both
// are Debian's packages chromium and chromium-driver.
#ifndef DFL_TESTS_PAGE_BROWSER_H_
#define DFL_TESTS_PAGE_BROWSER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"

namespace dfl::testing_support {

class Browser {
 public:
  // What is missing to have one, as a line for a skipped test; "": nothing.
  static std::string Missing();

  // Starts both; check ok().
  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;
  // Why it did not start; "": it did.
  const std::string& fault() const { return fault_; }

  void Open(const std::string& url);
  // The value that the body of a function returns: "return 1 + 1". Null, with a
  // failure of the test, where it throws.
  nlohmann::json Run(const std::string& body);
  // Waits until the body returns something true.
  bool Becomes(const std::string& body,
               absl::Duration limit = absl::Seconds(30));
  // Presses a key as a person does: "\uE004" is Tab (WebDriver's table).
  void Press(const std::string& key);
  // Of the viewport, in CSS pixels.
  void SetSize(int width, int height);
  void SetDark(bool dark);
  // A command of the DevTools protocol.
  nlohmann::json DevTools(const std::string& command,
                          const nlohmann::json& parameters);

  // What happened on the network since the last call: events of DevTools'
  // domain Network, as {method, params}.
  std::vector<nlohmann::json> Network();
  // What the console has of errors since the last call.
  std::vector<std::string> Errors();
  // Of the whole page, as PNG.
  void Screenshot(const std::string& file);

 private:
  nlohmann::json Call(const std::string& path, const nlohmann::json& body);
  nlohmann::json Log(const std::string& type);

  TemporaryFolder folder_;
  std::string fault_;
  std::unique_ptr<Process> driver_;
  std::unique_ptr<httplib::Client> client_;
  std::string session_;
};

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_PAGE_BROWSER_H_
