# Makes the Python package dfl in the folder OUT: the modules of SOURCE, and
# beside them those that protoc makes of the control contract in PROTO. Needs
# no network. PROTOC and PLUGIN are the two programs.
cmake_minimum_required(VERSION 3.25)
set(contract "dfl/control/v1")
file(GLOB modules "${SOURCE}/dfl/*.py")
file(INSTALL ${modules} DESTINATION "${OUT}/dfl")
file(MAKE_DIRECTORY "${OUT}/${contract}")
# In their places already, so that "dfl" is one package.
execute_process(
  COMMAND "${PROTOC}" -I "${PROTO}" "--python_out=${OUT}"
          "--grpc_python_out=${OUT}"
          "--plugin=protoc-gen-grpc_python=${PLUGIN}"
          "${PROTO}/${contract}/control.proto"
          "${PROTO}/${contract}/observe.proto"
  RESULT_VARIABLE result)
if(result)
  message(FATAL_ERROR "${PROTOC} made no Python modules of the control contract")
endif()
file(WRITE "${OUT}/dfl/control/__init__.py" "")
file(WRITE "${OUT}/${contract}/__init__.py" "")
