// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/holdout.h"

#include <map>

#include "calibrator/fit/indices.h"
#include "calibrator/fit/layer_selection.h"
#include "calibrator/fit/random.h"

namespace eldr::calibrator {
namespace {

/// rho of a fixed set of layers: the last layer is scored on top of all the others.
Result<double> rho_of(FitBackend& backend, const LayerFeatures& prefill, const LayerFeatures& decode) {
  auto scorer = backend.layer_scorer(prefill, decode);
  if (!scorer) {
    return failure(scorer.error());
  }
  const std::size_t last = prefill.layers() - 1;
  for (std::size_t layer = 0; layer < last; ++layer) {
    if (const Status added = (*scorer)->add(layer); !added) {
      return failure(added.error());
    }
  }
  const auto rhos = (*scorer)->score(std::span(&last, 1));
  if (!rhos) {
    return failure(rhos.error());
  }
  return rhos->front();
}

/// Chosen on `train`, measured on `test`.
Result<HeldOut> one_direction(FitBackend& backend, const signature::Trace& trace,
                              const std::vector<std::size_t>& train, const std::vector<std::size_t>& test,
                              signature::Transform transform, std::size_t max_layers,
                              const std::function<bool()>& step) {
  const std::vector<std::size_t> layers = indices_below(trace.layers.size());
  const signature::RowMatrixF idf = idf_of(trace, train, transform);
  auto scorer = backend.layer_scorer(prefill_features(trace, train, layers, transform, idf),
                                     decode_features(trace, train));
  if (!scorer) {
    return failure(scorer.error());
  }
  const auto selection =
      select_layers(**scorer, layers.size(), max_layers, [&](std::size_t, std::size_t) { return step(); });
  scorer->reset();  // its matrices go before those of the other half come
  if (!selection) {
    return failure(selection.error());
  }
  const auto rho = rho_of(backend, prefill_features(trace, test, selection->kept(), transform, idf),
                          decode_features(trace, test));
  if (!rho) {
    return failure(rho.error());
  }
  return HeldOut{*rho, static_cast<double>(selection->keep)};
}

}  // namespace

Halves split_in_halves(const signature::Trace& trace, std::span<const std::size_t> requests,
                       std::uint64_t seed) {
  std::map<std::string, std::vector<std::size_t>> strata;
  for (const std::size_t request : requests) {
    strata[trace.labels.empty() ? std::string() : trace.labels[request]].push_back(request);
  }
  Halves halves;
  Random random(seed, 0x48414C46);
  for (auto& [label, members] : strata) {
    for (std::size_t i = members.size(); i > 1; --i) {
      std::swap(members[i - 1], members[random.below(i)]);
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      // The odd one of a stratum goes to the half that is behind.
      const bool odd_one = i + 1 == members.size() && members.size() % 2 == 1;
      const bool to_first = odd_one ? halves.first.size() <= halves.second.size() : i % 2 == 0;
      (to_first ? halves.first : halves.second).push_back(members[i]);
    }
  }
  return halves;
}

Result<HeldOut> held_out_rho(FitBackend& backend, const signature::Trace& trace, const Halves& halves,
                             signature::Transform transform, std::size_t max_layers,
                             const std::function<bool()>& step) {
  const auto there = one_direction(backend, trace, halves.first, halves.second, transform, max_layers, step);
  if (!there) {
    return failure(there.error());
  }
  const auto back = one_direction(backend, trace, halves.second, halves.first, transform, max_layers, step);
  if (!back) {
    return failure(back.error());
  }
  return HeldOut{(there->rho + back->rho) / 2, (there->layers + back->layers) / 2};
}

}  // namespace eldr::calibrator
