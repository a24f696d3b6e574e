# Installs the client library of BUILD, then configures, builds and runs the
# program in SOURCE against it, in the folder WORK.
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
