// The reference of node settings as a page of the documentation.
#ifndef DFL_CONFIG_CONFIGURATION_PAGE_H_
#define DFL_CONFIG_CONFIGURATION_PAGE_H_

#include <string>

namespace dfl::config {

// docs/configuration.md in Markdown: a table for each section of the settings,
// with key, default, allowed values and meaning.
std::string ConfigurationPage();

}  // namespace dfl::config

#endif  // DFL_CONFIG_CONFIGURATION_PAGE_H_
