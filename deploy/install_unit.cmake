# Writes dfld.service and dfld@.service for the prefix that is installed to, which
# may be another than the one configured (cmake --install --prefix).
#
# UNIT_IN, BUILD_DIR, BINDIR, DOCDIR, UNIT_DIR: set by the caller; folders are
# relative to the prefix or absolute.
get_filename_component(prefix "${CMAKE_INSTALL_PREFIX}" ABSOLUTE)
foreach(folder BINDIR DOCDIR UNIT_DIR)
  if(NOT IS_ABSOLUTE "${${folder}}")
    set(${folder} "${prefix}/${${folder}}")
  endif()
endforeach()
foreach(unit dfld dfld@)
  set(INSTANCE "")
  set(OF_SEVERAL "")
  set(DESCRIBED "")
  if(unit STREQUAL "dfld@")
    set(INSTANCE "-%i")
    set(OF_SEVERAL ", one of several on this host")
    set(DESCRIBED " %i")
  endif()
  configure_file("${UNIT_IN}" "${BUILD_DIR}/${unit}.service" @ONLY)
  file(INSTALL DESTINATION "${UNIT_DIR}" TYPE FILE
       FILES "${BUILD_DIR}/${unit}.service")
endforeach()
