# Installs the client library of BUILD, then configures, builds and runs the
# programs in SOURCE and DOCS against it, in the folder WORK: by its CMake
# package, and that of DOCS also by pkg-config.
file(REMOVE_RECURSE "${WORK}")
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(result)
    list(JOIN ARGN " " text)
    message(FATAL_ERROR "failed: ${text}")
  endif()
endfunction()
run("${CMAKE_COMMAND}" --install "${BUILD}" --component client
    --prefix "${WORK}/prefix")
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/build"
    "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_CXX_FLAGS=${FLAGS}")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/example")

# The example of the documentation. Nobody answers it.
run("${CMAKE_COMMAND}" -S "${DOCS}/examples/client" -B "${WORK}/docs"
    "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_CXX_FLAGS=${FLAGS}")
run("${CMAKE_COMMAND}" --build "${WORK}/docs")
function(expect_nobody program)
  execute_process(COMMAND "${program}" unix:/nonexistent/x.sock
                  RESULT_VARIABLE result ERROR_VARIABLE text)
  if(NOT result EQUAL 1 OR NOT text MATCHES "/nonexistent/x.sock")
    message(FATAL_ERROR "${program} ends with ${result}: ${text}")
  endif()
endfunction()
expect_nobody("${WORK}/docs/network_status")

file(GLOB_RECURSE pc "${WORK}/prefix/*/dfld.pc")
get_filename_component(folder "${pc}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${folder}")
execute_process(COMMAND pkg-config --cflags --libs dfld RESULT_VARIABLE result
                OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE)
if(result)
  message(FATAL_ERROR "pkg-config finds no dfld")
endif()
separate_arguments(flags UNIX_COMMAND "${flags} ${FLAGS}")
run("${COMPILER}" -std=c++17 "${DOCS}/examples/client/network_status.cc"
    -o "${WORK}/by_pkg_config" ${flags})
expect_nobody("${WORK}/by_pkg_config")
