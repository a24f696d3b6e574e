# Every outside library, found once and in one place. All come from Debian's
# packages (scripts/packages.txt); LibTorch may also be unpacked anywhere and
# named through CMAKE_PREFIX_PATH.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)  # module mode: config mode fails on Debian 12
find_package(gRPC CONFIG REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SYSTEMD IMPORTED_TARGET libsystemd)
if(NOT SYSTEMD_FOUND)
  message(FATAL_ERROR "There is no libsystemd (Debian: libsystemd-dev). "
                      "dfld.service is Type=notify: a dfld that cannot tell "
                      "systemd that it serves would never become ready.")
endif()
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
# Its CMake package also asks for libraries of parts that are not used here.
pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
pkg_check_modules(AVAHI IMPORTED_TARGET avahi-client)
# The library in the process is linked as an archive, and its names stay inside:
# both libraries have an avahi_entry_group_free, with other arguments, and as two
# shared ones either would call the other's.
find_library(AVAHI_CORE libavahi-core.a)
if(NOT AVAHI_FOUND OR NOT AVAHI_CORE)
  message(FATAL_ERROR "There is no Avahi (Debian: libavahi-client-dev and "
                      "libavahi-core-dev): nodes on one network find one "
                      "another by mDNS.")
endif()

find_program(DFL_CCACHE ccache)
if(DFL_CCACHE)
  # Paths are taken relative to the source folder, so that clones share.
  set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}"
               CCACHE_NOHASHDIR=1 "${DFL_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

if(DFL_TORCH)
  find_package(Torch REQUIRED)
  # A target of our own: system includes (no warnings from them), no flags that
  # the package would push into every other room.
  add_library(dfl_torch INTERFACE)
  target_include_directories(dfl_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(dfl_torch INTERFACE ${TORCH_LIBRARIES})
  # A false report of g++ 12 about c10::IValue's destructor, once it is inlined.
  target_compile_options(dfl_torch INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
  # A LibTorch built with the old std::string ABI says so in its flags.
  if(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
    message(FATAL_ERROR "This LibTorch was built with the old libstdc++ ABI; "
                        "gRPC and protobuf were not. Use the cxx11-abi build.")
  endif()
endif()

if(DFL_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(DFL_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
