// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/layer_selection.h"

#include <algorithm>

#include "calibrator/fit/indices.h"

namespace eldr::calibrator {

Result<LayerScorer::Choice> LayerScorer::best(std::span<const std::size_t> candidates) {
  const auto rhos = score(candidates);
  if (!rhos) {
    return failure(rhos.error());
  }
  const auto highest = std::max_element(rhos->begin(), rhos->end());
  return Choice{candidates[static_cast<std::size_t>(highest - rhos->begin())], *highest};
}

Result<LayerSelection> select_layers(LayerScorer& scorer, std::size_t layers, std::size_t max_layers,
                                     const std::function<bool(std::size_t, std::size_t)>& step) {
  LayerSelection selection;
  std::vector<std::size_t> left = indices_below(layers);
  while (!left.empty()) {
    const auto best = scorer.best(left);  // the first of equals: the lowest index
    if (!best) {
      return failure(best.error());
    }
    if (const Status added = scorer.add(best->layer); !added) {
      return failure(added.error());
    }
    selection.order.push_back(best->layer);
    selection.rhos.push_back(best->rho);
    std::erase(left, best->layer);
    if (!step(selection.order.size(), layers)) {
      return failure(Code::kCancelled, "stopped while selecting layers");
    }
  }
  const auto limit = max_layers == 0 ? selection.rhos.size() : std::min(max_layers, selection.rhos.size());
  const auto end = selection.rhos.begin() + static_cast<std::ptrdiff_t>(limit);
  selection.keep =
      static_cast<std::size_t>(std::max_element(selection.rhos.begin(), end) - selection.rhos.begin()) + 1;
  return selection;
}

}  // namespace eldr::calibrator
