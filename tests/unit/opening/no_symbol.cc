// A shared object that is no learner.
extern "C" int dfl_something_else() { return 0; }
