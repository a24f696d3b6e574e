// The fields of a status, in the order in which they are told. A status has
// four forms: the daemon's own (daemon/runtime/status.h, daemon/control/
// backend.h), the wire's (control.proto), the client's (client/types.h) and
// JSON's (cli/status_json.h). A field has the same name in all of them, and
// the code that turns one form into the next is made from these lists. So a new
// field is declared in the structs and the message and gets one line here.
// tests/unit/cli/status_forms_test.cc fails when any form lacks it.
//
// Each list takes names of macros:
//   VALUE(name, source)  One value. `source` is the member in the daemon's own
//                        struct, where a span of time has no unit in its name.
//   MANY(name)           A list or a map.
//   OPTIONAL(name)       One value that may be unset.
//   MAYBE(name)          A message that may be unset; the daemon fills it by
//                        hand.
#ifndef DFL_PROTO_STATUS_FIELDS_H_
#define DFL_PROTO_STATUS_FIELDS_H_

// Who a node is. JSON tells it first.
#define DFL_NODE_NAME_FIELDS(VALUE) \
  VALUE(node, node)                 \
  VALUE(incarnation, incarnation)

// What else a node tells about itself.
#define DFL_NODE_STATUS_FIELDS(VALUE, MANY, OPTIONAL, MAYBE) \
  VALUE(phase, phase)                                        \
  VALUE(phase_reason, phase_reason)                          \
  VALUE(run_id, run_id)                                      \
  VALUE(plan_version, plan_version)                          \
  VALUE(pending_plan_version, pending_plan_version)          \
  VALUE(algorithm, algorithm)                                \
  MANY(knobs)                                                \
  VALUE(topology, topology)                                  \
  VALUE(weights, weights)                                    \
  VALUE(spectral_gap, spectral_gap)                          \
  VALUE(member_count, member_count)                          \
  VALUE(format, format)                                      \
  VALUE(model, model)                                        \
  MANY(contract)                                             \
  VALUE(parameter_count, parameter_count)                    \
  VALUE(buffer_count, buffer_count)                          \
  VALUE(train_rows, train_rows)                              \
  VALUE(test_rows, test_rows)                                \
  VALUE(step, step)                                          \
  VALUE(stop_steps, stop_steps)                              \
  VALUE(round, round)                                        \
  VALUE(stop_rounds, stop_rounds)                            \
  VALUE(epochs, epochs)                                      \
  VALUE(stop_epochs, stop_epochs)                            \
  VALUE(gradients, gradients)                                \
  VALUE(failed_gradients, failed_gradients)                  \
  VALUE(skipped_batches, skipped_batches)                    \
  VALUE(far_models, far_models)                              \
  OPTIONAL(loss)                                             \
  MAYBE(evaluation)                                          \
  VALUE(steps_per_second, steps_per_second)                  \
  VALUE(training_seconds, training_time)                     \
  VALUE(longest_step_gap_seconds, longest_step_gap)          \
  MANY(gauges)                                               \
  VALUE(bytes_sent, bytes_sent)                              \
  VALUE(bytes_received, bytes_received)                      \
  VALUE(dense_bytes_sent, dense_bytes_sent)                  \
  VALUE(models_sent, models_sent)                            \
  VALUE(models_received, models_received)                    \
  VALUE(missed, missed)                                      \
  MANY(rejected)                                             \
  VALUE(alone, alone)                                        \
  VALUE(last_error, last_error)                              \
  VALUE(checkpoint_step, checkpoint_step)                    \
  VALUE(checkpoint_error, checkpoint_error)                  \
  VALUE(data_error, data_error)                              \
  MANY(peers)

// Scores of the model, beside the step that they are of.
#define DFL_EVALUATION_FIELDS(VALUE, OPTIONAL) \
  VALUE(loss, loss)                            \
  OPTIONAL(accuracy)                           \
  OPTIONAL(macro_f1)                           \
  OPTIONAL(mae)                                \
  OPTIONAL(r2)                                 \
  VALUE(rows, rows)

// One peer of a node.
#define DFL_PEER_STATUS_FIELDS(VALUE, MANY) \
  VALUE(node, node)                         \
  VALUE(address, address)                   \
  VALUE(neighbour, neighbour)               \
  VALUE(linked, linked)                     \
  VALUE(weight, weight)                     \
  VALUE(phase, phase)                       \
  VALUE(step, step)                         \
  VALUE(plan_version, plan_version)         \
  VALUE(bytes_sent, bytes_sent)             \
  VALUE(bytes_received, bytes_received)     \
  VALUE(models_sent, models_sent)           \
  VALUE(models_received, models_received)   \
  VALUE(missed, missed)                     \
  VALUE(rejected, rejected)                 \
  VALUE(mixing, mixing)                     \
  VALUE(not_mixing, not_mixing)             \
  MANY(disagrees)                           \
  VALUE(last_error, last_error)

// What the process tells beside its node.
#define DFL_DAEMON_STATUS_FIELDS(VALUE, MANY)   \
  VALUE(version, version)                       \
  VALUE(insecure, insecure)                     \
  MANY(warnings)                                \
  VALUE(uptime_seconds, uptime)                 \
  MANY(peer_addresses)                          \
  VALUE(memory_bytes, memory_bytes)             \
  VALUE(memory_limit_bytes, memory_limit_bytes) \
  VALUE(cluster, cluster)                       \
  VALUE(certificate_days, certificate_days)     \
  MANY(refused)                                 \
  MANY(banned)                                  \
  VALUE(learner, learner)                       \
  VALUE(threads, threads)                       \
  VALUE(threads_reason, threads_reason)

#endif  // DFL_PROTO_STATUS_FIELDS_H_
