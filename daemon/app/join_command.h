// dfld join TOKEN --at HOST:PORT: gets this node's certificate, and ends.
#ifndef DFL_APP_JOIN_COMMAND_H_
#define DFL_APP_JOIN_COMMAND_H_

namespace dfl::app {

// True when the first argument is "join".
bool IsJoinCommand(int argc, const char* const* argv);

// The whole command. TOKEN may be "-", to read it from stdin. Settings are read
// as for a daemon, and may be given as flags: the name and tls.* count. Returns
// the exit code, see daemon.h; errors are on stderr.
int JoinMain(int argc, const char* const* argv);

}  // namespace dfl::app

#endif  // DFL_APP_JOIN_COMMAND_H_
