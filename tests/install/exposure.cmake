# What the units of deploy/ leave open, as systemd-analyze counts it: 1.5 at the
# most, of the units and of each with a drop-in that is not for hardware or for
# data below /home.
#
# SOURCE, WORK: set by the caller.
cmake_minimum_required(VERSION 3.25)
find_program(analyze systemd-analyze)
if(NOT analyze)
  message(STATUS "this test is skipped: install systemd")
  return()
endif()
file(REMOVE_RECURSE "${WORK}")

# Sets `out` to whether `unit` stays at `most` tenths or below.
function(is_closed unit most out)
  execute_process(
    COMMAND "${analyze}" security --offline=true --no-pager
            --threshold=${most} "${unit}"
    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE complaint)
  if(NOT said MATCHES "Overall exposure level for [^:]*: ([0-9.]+)")
    message(FATAL_ERROR "systemd-analyze cannot read ${unit}: ${complaint}")
  endif()
  message(STATUS "${unit}: ${CMAKE_MATCH_1}")
  set(${out} TRUE PARENT_SCOPE)
  if(result)
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

# `dropin` "": the unit alone.
function(check unit dropin most)
  set(folder "${WORK}/${unit}-${dropin}")
  file(COPY "${WORK}/units/${unit}.service" DESTINATION "${folder}")
  if(dropin)
    file(READ "${SOURCE}/deploy/drop-ins/${dropin}.conf" more)
    file(APPEND "${folder}/${unit}.service" "\n${more}")
  endif()
  is_closed("${folder}/${unit}.service" ${most} closed)
  if(NOT closed)
    message(SEND_ERROR "${unit}.service ${dropin} is above ${most} tenths; see "
                       "systemd-analyze security --offline=true")
  endif()
endfunction()

set(CMAKE_INSTALL_PREFIX "/usr")
set(UNIT_IN "${SOURCE}/deploy/dfld.service.in")
set(BUILD_DIR "${WORK}/built")
set(BINDIR "bin")
set(DOCDIR "share/doc/dfld")
set(UNIT_DIR "${WORK}/units")
include("${SOURCE}/deploy/install_unit.cmake")
foreach(unit dfld dfld@)
  check(${unit} "" 15)
  check(${unit} credentials 15)
  check(${unit} dynamic-user 15)
  check(${unit} home 15)
  check(${unit} gpu 20)
endforeach()

# A service without any hardening is above: the measure works.
file(WRITE "${WORK}/open.service" "[Service]\nExecStart=/bin/true\n")
is_closed("${WORK}/open.service" 15 closed)
if(closed)
  message(SEND_ERROR "an open service passes: this test cannot fail")
endif()
file(REMOVE_RECURSE "${WORK}")
