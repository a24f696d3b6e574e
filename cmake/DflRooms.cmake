# dfl_room(NAME ... LEVEL n SRCS ... DEPS ...)  one room of the daemon, see
#   docs/architecture.md. DEPS that are rooms must have a lower level.
# dfl_test(NAME ... SRCS ... DEPS ... [LABELS ...] [TIMEOUT s])  one test binary.
# dfl_program(NAME ... SRCS ... DEPS ...)  one executable.
add_library(dfl_options INTERFACE)
target_include_directories(dfl_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(dfl_options INTERFACE
  -Wall -Wextra -ffp-contract=off
  $<$<BOOL:${DFL_WERROR}>:-Werror>
  # False reports of g++ 12: moved-from std::variant members that are never read;
  # and, at -O3, a std::string that is assigned a literal (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Wthread-safety-beta
    -Wno-deprecated-declarations -Wno-deprecated-builtins>)
if(DFL_SANITIZE MATCHES "thread")
  # Reports and suppressions need names, which llvm-symbolizer of another
  # version than the compiler's cannot read.
  find_program(DFL_ADDR2LINE addr2line REQUIRED)
  string(JOIN " " DFL_TSAN_OPTIONS
    ignore_noninstrumented_modules=1 report_thread_leaks=0
    "external_symbolizer_path=${DFL_ADDR2LINE}"
    "suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.supp")
endif()
if(DFL_SANITIZE)
  add_compile_options(-fsanitize=${DFL_SANITIZE} -fno-omit-frame-pointer)
  if(DFL_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  add_link_options(-fsanitize=${DFL_SANITIZE})
endif()
if(DFL_SANITIZE MATCHES "thread")
  # The order that absl's locks make, told to ThreadSanitizer: in tests, and in
  # the programs that they start.
  add_library(dfl_tsan_absl OBJECT
    "${CMAKE_SOURCE_DIR}/tests/support/tsan_absl.cc")
  target_link_libraries(dfl_tsan_absl PUBLIC
    dfl_options absl::synchronization ${CMAKE_DL_LIBS})
endif()
if(DFL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "DFL_FUZZ needs clang: cmake --preset fuzz")
  endif()
  # libFuzzer sees what of the rooms an input reaches.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

function(dfl_room)
  cmake_parse_arguments(ARG "" "NAME;LEVEL" "SRCS;DEPS" ${ARGN})
  add_library(dfl_${ARG_NAME} STATIC ${ARG_SRCS})
  add_library(dfl::${ARG_NAME} ALIAS dfl_${ARG_NAME})
  set_property(GLOBAL APPEND PROPERTY DFL_ROOMS dfl_${ARG_NAME})
  set_property(TARGET dfl_${ARG_NAME} PROPERTY DFL_LEVEL ${ARG_LEVEL})
  foreach(dep IN LISTS ARG_DEPS)
    if(dep MATCHES "^dfl::(.*)$")
      get_property(level TARGET dfl_${CMAKE_MATCH_1} PROPERTY DFL_LEVEL)
      if(NOT level STREQUAL "" AND NOT level LESS ARG_LEVEL)
        message(FATAL_ERROR "room ${ARG_NAME} (level ${ARG_LEVEL}) may not "
                            "depend on ${dep} (level ${level})")
      endif()
    endif()
  endforeach()
  target_link_libraries(dfl_${ARG_NAME} PUBLIC dfl_options ${ARG_DEPS})
endfunction()

function(dfl_program)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE dfl_options ${ARG_DEPS})
  if(TARGET dfl_tsan_absl)
    target_link_libraries(${ARG_NAME} PRIVATE dfl_tsan_absl)
  endif()
  set_target_properties(${ARG_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endfunction()

function(dfl_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  if(NOT DFL_BUILD_TESTS)
    return()
  endif()
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE
    dfl_options ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  if(TARGET dfl_tsan_absl)
    target_link_libraries(${ARG_NAME} PRIVATE dfl_tsan_absl)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
    if(DFL_SANITIZE)
      set(ARG_TIMEOUT 1500)  # instrumented code is slow
    endif()
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
  set_tests_properties(${ARG_NAME} PROPERTIES
    TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
    ENVIRONMENT "TSAN_OPTIONS=${DFL_TSAN_OPTIONS}")
  # What may open sockets or measure time runs alone, the rest side by side.
  if(NOT "unit" IN_LIST ARG_LABELS AND NOT "golden" IN_LIST ARG_LABELS)
    set_tests_properties(${ARG_NAME} PROPERTIES RUN_SERIAL TRUE)
  endif()
  foreach(label IN LISTS ARG_LABELS)
    set_property(GLOBAL APPEND PROPERTY DFL_TESTS_${label} ${ARG_NAME})
  endforeach()
  foreach(src IN LISTS ARG_SRCS)
    cmake_path(ABSOLUTE_PATH src NORMALIZE OUTPUT_VARIABLE abs)
    set_property(GLOBAL APPEND PROPERTY DFL_TEST_SOURCES "${abs}")
  endforeach()
endfunction()

# dfl_label_target(LABEL)  target LABEL_tests builds all tests of that label.
function(dfl_label_target label)
  get_property(tests GLOBAL PROPERTY DFL_TESTS_${label})
  add_custom_target(${label}_tests DEPENDS ${tests})
endfunction()

# A *_test.cc that no dfl_test names is an error: it would never run.
function(dfl_check_every_test_is_named)
  file(GLOB_RECURSE found "${CMAKE_SOURCE_DIR}/tests/*_test.cc")
  get_property(named GLOBAL PROPERTY DFL_TEST_SOURCES)
  foreach(src IN LISTS found)
    if(NOT src IN_LIST named AND (DFL_TORCH OR NOT src MATCHES "learner|e2e|faults|integration|network"))
      message(SEND_ERROR "${src} is named by no dfl_test and would never run")
    endif()
  endforeach()
endfunction()
