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
    include/dfld/client/control_client.h include/dfld/client/types.h)
  if(NOT EXISTS "${prefix}/${file}")
    message(SEND_ERROR "${file} is not installed")
  endif()
endforeach()

# The installed programs find LibTorch's learner, by their place alone.
file(GLOB_RECURSE module "${prefix}/dfld-torch.so")
if(NOT module)
  message(SEND_ERROR "dfld-torch.so is not installed")
endif()
file(MAKE_DIRECTORY "${WORK}/conf.d")
file(WRITE "${WORK}/rows.csv" "1,2,0\n3,4,1\n")
file(WRITE "${WORK}/plan.yaml" "
participants: {fixed: [node]}
model: {kind: torchscript, path: ${WORK}/none.pt}
algorithm: {name: d-psgd, knobs: {eta: 0.1}}
topology: {kind: complete}
stop: {steps: 1}
")
file(WRITE "${WORK}/dfld.yaml" "
name: node
state_dir: ${WORK}/state
security: insecure
data: {format: csv, train: {paths: [${WORK}/rows.csv]}}
run: {plan: ${WORK}/plan.yaml}
")
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env --unset=DFL_TORCH_MODULE
          "${prefix}/bin/dfld" --config "${WORK}/dfld.yaml"
          --conf-d "${WORK}/conf.d" --check
  RESULT_VARIABLE result ERROR_VARIABLE error OUTPUT_QUIET)
if(NOT error MATCHES "none.pt")
  message(SEND_ERROR "the installed dfld does not open LibTorch's learner: ${error}")
endif()

# The unit starts what was installed with it.
file(STRINGS "${prefix}/lib/systemd/system/dfld.service" unit
     REGEX "^(ExecStart|Documentation)=")
foreach(line "ExecStart=${prefix}/bin/dfld"
             "Documentation=man:dfld(8) file:${prefix}/share/doc/dfld/")
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
# The Python package is whole, wherever it is put.
find_program(plugin grpc_python_plugin)
if(plugin)
  file(GLOB package "${prefix}/lib/python3*/dist-packages/dfl/__init__.py")
  if(NOT package)
    message(SEND_ERROR "the Python package dfl is not installed")
  endif()
  cmake_path(GET package PARENT_PATH folder)
  cmake_path(GET folder PARENT_PATH folder)
  execute_process(COMMAND /usr/bin/python3 -c "import grpc, google.protobuf"
                  RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(missing)
    message(STATUS "install python3-grpcio to try the Python package")
  else()
    execute_process(
      COMMAND "${CMAKE_COMMAND}" -E env "PYTHONPATH=${folder}"
              /usr/bin/python3 -B -c "import dfl; dfl.connect"
      RESULT_VARIABLE result)
    if(result)
      message(SEND_ERROR "the installed Python package cannot be imported")
    endif()
  endif()
endif()
file(REMOVE_RECURSE "${WORK}")
