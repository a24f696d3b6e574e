// How many processors libraries believe there are. gRPC starts threads by
// sysconf(_SC_NPROCESSORS_CONF), which is the whole machine, whatever affinity
// and cgroup allow: 16 or more in a container that may use two processors, and
// gRPC 1.51 has no setting for it. So dfld has a `sysconf` of its own, which
// shared libraries find before glibc's, and which answers with fewer.
//
// Linked into the program only, and not into the room: a test that wants it
// names the file.
#ifndef DFL_APP_COMPUTE_BOUNDED_PROCESSORS_H_
#define DFL_APP_COMPUTE_BOUNDED_PROCESSORS_H_

namespace dfl::app {

// From here on sysconf tells of at most `count` processors, configured or
// online; 0: of all there are. All its other answers are glibc's. Thread-safe.
void BoundProcessors(int count);

}  // namespace dfl::app

#endif  // DFL_APP_COMPUTE_BOUNDED_PROCESSORS_H_
