# Installs BUILD below WORK/usr, another prefix than it was configured for, as
# the README of SOURCE does, and looks at what is there.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK}")
set(prefix "${WORK}/usr")
execute_process(
  COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}"
  RESULT_VARIABLE result OUTPUT_QUIET)
if(result)
  message(FATAL_ERROR "the installation failed")
endif()

foreach(file
    bin/dfld bin/dflctl bin/dflsim
    share/doc/dfld/dfld.yaml share/doc/dfld/plan.example.yaml
    share/doc/dfld/service.md
    lib/systemd/system/dfld.service lib/sysusers.d/dfld.conf
    include/dfld/client/control_client.h)
  if(NOT EXISTS "${prefix}/${file}")
    message(SEND_ERROR "${file} is not installed")
  endif()
endforeach()

# The unit starts what was installed with it.
file(STRINGS "${prefix}/lib/systemd/system/dfld.service" unit
     REGEX "^(ExecStart|Documentation)=")
foreach(line "ExecStart=${prefix}/bin/dfld"
             "Documentation=file:${prefix}/share/doc/dfld/")
  if(NOT line IN_LIST unit)
    message(SEND_ERROR "dfld.service has no line ${line}, but ${unit}")
  endif()
endforeach()

# The README builds every program before it installs.
file(STRINGS "${SOURCE}/README.md" build REGEX "^cmake --preset release ")
file(GLOB programs RELATIVE "${prefix}/bin" "${prefix}/bin/*")
foreach(program ${programs})
  if(NOT build MATCHES "--target .*${program}( |$)")
    message(SEND_ERROR "README.md installs ${program} without building it")
  endif()
  execute_process(COMMAND "${prefix}/bin/${program}" --help
                  RESULT_VARIABLE result OUTPUT_QUIET)
  if(result)
    message(SEND_ERROR "${program} --help ends with ${result}")
  endif()
endforeach()
file(REMOVE_RECURSE "${WORK}")
