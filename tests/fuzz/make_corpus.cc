// Writes those files of the corpus that are made by this project's own
// encoders, so that a changed format gets them anew:
//
//   fuzz_make_corpus tests/fuzz/corpus
//
// The others were made by hand or by other programs, and stay as they are.
#include <cstdio>

#include "tests/fuzz/corpus_writer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "Usage: fuzz_make_corpus FOLDER\n");
    return 2;
  }
  const dfl::fuzz::CorpusWriter corpus(argv[1]);
  dfl::fuzz::PutMessages(corpus);
  dfl::fuzz::PutFiles(corpus);
  dfl::fuzz::PutAlgorithms(corpus);
  return 0;
}
