# Writes the status page's parts as one C++ source, at build time:
#
#   cmake -DOUTPUT=x.cc -DSHELL=a.html -DSTYLES=a.css:b.css -DSCRIPTS=a.js:b.js
#         -DLICENCES=LICENSE -P DflEmbed.cmake
#
# Files of one kind are joined in the order given. The licences stand as a
# comment before the scripts, so that every copy of the page carries them.
function(dfl_join out paths)
  set(joined "")
  string(REPLACE ":" ";" paths "${paths}")
  foreach(path IN LISTS paths)
    file(READ "${path}" text)
    string(APPEND joined "${text}\n")
  endforeach()
  set(${out} "${joined}" PARENT_SCOPE)
endfunction()

dfl_join(shell "${SHELL}")
dfl_join(styles "${STYLES}")
dfl_join(scripts "${SCRIPTS}")
dfl_join(licences "${LICENCES}")
foreach(text IN ITEMS "${shell}" "${styles}" "${scripts}" "${licences}")
  if(text MATCHES "\\)dflpage\"")
    message(FATAL_ERROR "An asset of the page ends its C++ literal.")
  endif()
endforeach()

file(WRITE "${OUTPUT}.new" "// Made by cmake/DflEmbed.cmake.
#include \"daemon/page/page_parts.h\"

namespace dfl::page {

const char kShell[] = R\"dflpage(${shell})dflpage\";
const char kStyle[] = R\"dflpage(${styles})dflpage\";
const char kScript[] = R\"dflpage(/*!
${licences}*/
${scripts})dflpage\";

}  // namespace dfl::page
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
