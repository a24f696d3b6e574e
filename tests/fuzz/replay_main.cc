// Runs fuzz targets over files, without a fuzzer.
//
//   fuzz_replay                 every target over its folder of the corpus
//   fuzz_replay TARGET FILE...  one target over these files, say of a finding
//
// Each file's name is printed before it is run, so that the last one is the
// cause where the program dies. A target without files, and a folder without a
// target, are failures. Exit code: 0 all well, 1 failures, 2 wrong usage.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

TargetMap& Targets() {
  static TargetMap* const kTargets = new TargetMap;
  return *kTargets;
}

namespace {

namespace fs = std::filesystem;

// False: the file cannot be read.
bool Replay(const std::string& name, Target target, const fs::path& file) {
  std::printf("%s %s\n", name.c_str(), file.c_str());
  std::fflush(stdout);
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in.good()) {
    std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
    return false;
  }
  target(bytes);
  return true;
}

bool ReplayFolder(const std::string& name, Target target,
                  const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, "target %s has no corpus: %s is empty or missing\n",
                 name.c_str(), folder.c_str());
  }
  bool well = !files.empty();
  for (const fs::path& file : files) well &= Replay(name, target, file);
  return well;
}

bool EveryFolderHasATarget(const fs::path& corpus) {
  bool well = true;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(corpus, missing)) {
    if (Targets().count(entry.path().filename().string()) > 0) continue;
    std::fprintf(stderr, "%s belongs to no target\n", entry.path().c_str());
    well = false;
  }
  return well;
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    const fs::path corpus = DFL_FUZZ_CORPUS;
    bool well = EveryFolderHasATarget(corpus);
    for (const auto& [name, target] : Targets()) {
      well &= ReplayFolder(name, target, corpus / name);
    }
    return well ? 0 : 1;
  }
  const auto found = Targets().find(arguments[0]);
  if (found == Targets().end() || arguments.size() < 2) {
    std::fprintf(stderr, "Usage: fuzz_replay [TARGET FILE...]\nTargets:\n");
    for (const auto& [name, target] : Targets()) {
      std::fprintf(stderr, "  %s\n", name.c_str());
    }
    return 2;
  }
  bool well = true;
  for (size_t i = 1; i < arguments.size(); ++i) {
    well &= Replay(found->first, found->second, arguments[i]);
  }
  return well ? 0 : 1;
}

}  // namespace
}  // namespace dfl::fuzz

int main(int argc, char** argv) {
  try {
    return dfl::fuzz::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "a decoder threw: %s\n", error.what());
    return 1;
  }
}
