// Mixing matrices. An undirected graph has W, which is symmetric, doubly
// stochastic, and positive only on edges and on the diagonal. A directed graph
// has A, whose rows sum to 1, and B, whose columns do.
#ifndef DFL_CORE_GRAPH_MIXING_H_
#define DFL_CORE_GRAPH_MIXING_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/core/graph/graph.h"

namespace dfl::core {

// [m][m]; row i = the weights node i gives to what it holds.
using MixingMatrix = std::vector<std::vector<double>>;

// metropolis: W_ij = 1/(1 + max(d_i, d_j)) on edges. [thesis ch. 2]
// laplacian:  W = I - L/(d_max + 1). [DeceFL]
// uniform:    1/m, on the complete graph only.
// explicit:   `matrix`, checked.
// Errors: INVALID_ARGUMENT for an unknown rule; for uniform on another graph;
// for an explicit matrix whose row or column does not sum to 1 within 1e-6, is
// negative, not symmetric, has weight off the edges or none on one (row, column
// and value are named).
absl::StatusOr<MixingMatrix> BuildMixing(absl::string_view rule,
                                         const Graph& graph,
                                         const MixingMatrix& matrix = {});

// Returns the errors of BuildMixing without building the matrix.
absl::Status CheckMixing(absl::string_view rule, const Graph& graph,
                         const MixingMatrix& matrix = {});

// Row `node` alone, in O(degree) (laplacian: O(m)).
struct MixingRow {
  std::vector<double> weights;  // [degree], in the order of graph.neighbours
  double self = 1;              // W_ii
};
// `rule` and `matrix` must have passed CheckMixing for `graph`.
MixingRow BuildMixingRow(absl::string_view rule, const Graph& graph,
                         const MixingMatrix& matrix, int64_t node);

// lambda = ||W - 11'/m||_2; the spectral gap is 1 - lambda. m >= 1.
double SecondSingularValue(const MixingMatrix& w);
inline double SpectralGap(const MixingMatrix& w) {
  return 1 - SecondSingularValue(w);
}

// The weights of a directed graph. Entry [i][j] belongs to the arc j -> i.
// [Spod-GT] Alg. 1 line 5
struct DirectedWeights {
  MixingMatrix a;  // a_ij = 1/(1 + |in(i)|): the receiver's; rows sum to 1
  MixingMatrix b;  // b_ij = 1/(1 + |out(j)|): the sender's; columns sum to 1
};
DirectedWeights BuildDirectedWeights(const Digraph& graph);

// The weights that `node` gives to itself and to each node it hears (row of A).
inline double ReceiverWeight(const Digraph& graph, int64_t node) {
  return 1 / static_cast<double>(1 + graph.in(node).size());
}
// The share of its own that `node` keeps and sends to each (column of B).
inline double SenderWeight(const Digraph& graph, int64_t node) {
  return 1 / static_cast<double>(1 + graph.out(node).size());
}

// How little weight a model has in push-sum while nothing fails: entry i is the
// minimum over t of omega_i(t) min(1, omega_i(t)/omega_i(t-1)), omega(t) = B^t
// 1. The second factor accounts for a model whose omega falls: more than b_ii
// of it is its own. Positive if the graph is strongly connected. Cost: as many
// passes over the arcs as B needs to converge, at most 10,000.
std::vector<double> LeastOmega(const Digraph& graph);

std::vector<double> RowSums(const MixingMatrix& w);
std::vector<double> ColumnSums(const MixingMatrix& w);

// |lambda_2|, the second largest modulus among the eigenvalues of a square
// matrix whose rows, or whose columns, all sum to 1; 0 for m = 1. It is 1 when
// the graph has two parts that nothing enters (A), or that nothing leaves (B).
// Cost: about 40 products of m x m matrices.
double SecondLargestModulus(const MixingMatrix& w);

}  // namespace dfl::core

#endif  // DFL_CORE_GRAPH_MIXING_H_
