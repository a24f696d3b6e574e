# dfl_highway: vectors for each instruction set (daemon/codec/value_kernels.h).
find_package(hwy CONFIG REQUIRED)
add_library(dfl_highway INTERFACE)
target_link_libraries(dfl_highway INTERFACE hwy::hwy)
# Only vectors of a length that is known when they are compiled: no SVE, no RVV.
target_compile_definitions(dfl_highway INTERFACE
  "HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_RVV)")
