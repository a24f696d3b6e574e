// LibTorch's learner as another build would have it.
extern "C" const void* dfl_open_torch_interface(const char* /*version*/,
                                                const char** own) {
  *own = "dfld 0.0.7";
  return nullptr;
}
