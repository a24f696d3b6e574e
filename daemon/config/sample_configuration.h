// The sample file of node settings.
#ifndef DFL_CONFIG_SAMPLE_CONFIGURATION_H_
#define DFL_CONFIG_SAMPLE_CONFIGURATION_H_

#include <string>

namespace dfl::config {

// The commented sample (deploy/dfld.yaml): every key with its help, unit,
// allowed values and default. Defaults are those of a service.
std::string SampleConfiguration();

}  // namespace dfl::config

#endif  // DFL_CONFIG_SAMPLE_CONFIGURATION_H_
