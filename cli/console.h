// What dflctl shares with dflsim, under the names this room uses.
#ifndef DFL_CLI_CONSOLE_H_
#define DFL_CLI_CONSOLE_H_

#include "daemon/base/atomic_file.h"
#include "daemon/console/document.h"
#include "daemon/console/interrupt.h"
#include "daemon/console/io.h"
#include "daemon/console/table.h"
#include "daemon/console/units.h"

namespace dfl::cli {

using console::Fixed;
using console::HumanBytes;
using console::HumanSeconds;
using console::InterruptScope;
using console::Io;
using console::Json;
using console::KeyValueLines;
using console::Printable;
using console::ProcessIo;
using console::ProgressBar;
using console::Table;
using console::TerminalWidth;
using console::ToJson;
using console::ToJsonLine;
using console::ToYaml;

}  // namespace dfl::cli

#endif  // DFL_CLI_CONSOLE_H_
