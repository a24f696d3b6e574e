// The sample file of node settings.
#ifndef DFL_CONFIG_SAMPLE_CONFIGURATION_H_
#define DFL_CONFIG_SAMPLE_CONFIGURATION_H_

#include <string>

namespace dfl::config {

// The commented sample (deploy/dfld.yaml): every key with help, unit, what is
// allowed and default. Defaults are those of a service.
std::string SampleConfiguration();

}  // namespace dfl::config

#endif  // DFL_CONFIG_SAMPLE_CONFIGURATION_H_
