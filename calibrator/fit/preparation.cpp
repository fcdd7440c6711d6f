// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/preparation.h"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "calibrator/fit/holdout.h"
#include "calibrator/fit/indices.h"
#include "calibrator/fit/quality.h"

namespace eldr::calibrator {
namespace {

using signature::Transform;

constexpr Transform kAllTransforms[] = {Transform::kCountIdf, Transform::kCount, Transform::kSqrtCount,
                                        Transform::kBinary};
/// Halves of fewer are noise.
constexpr std::size_t kFewestForHeldOut = 20;

/// Step by step; fields are filled in the order of run().
class Preparer {
 public:
  Preparer(const signature::Trace& trace, const FitOptions& options, FitBackend& backend, const Clock& clock,
           Steps& steps)
      : trace_(trace), options_(options), backend_(backend), clock_(clock), steps_(steps) {}

  Result<Preparation> run(std::size_t clusterings) {
    if (const Status found = find_requests(); !found) {
      return failure(found.error());
    }
    const std::vector<Transform> measured = transforms_to_measure();
    // A step is a layer added in a greedy selection, or a start of a clustering.
    steps_.expect(layers_.size() * (2 * measured.size() + 1) + clusterings * options_.restarts);
    prepared_.transform = options_.transform.value_or(Transform::kCountIdf);
    Status status = measure_held_out(measured);
    for (const auto& step : {&Preparer::select, &Preparer::compare}) {
      if (status) {
        status = (this->*step)();
      }
    }
    if (!status) {
      return failure(status.error());
    }
    return std::move(prepared_);
  }

 private:
  Status find_requests() {
    const std::size_t n = trace_.requests();
    if (n < 2) {
      return failure(Code::kInvalid, fmt::format("trace: {} requests; at least 2 are needed", n));
    }
    requests_ = indices_below(n);
    layers_ = indices_below(trace_.layers.size());
    std::copy_if(requests_.begin(), requests_.end(), std::back_inserter(decoded_),
                 [&](std::size_t request) { return trace_.decode_tokens[request] > 0; });
    if (decoded_.size() < 2) {
      return failure(Code::kInvalid,
                     fmt::format("trace: {} of {} requests have decode tokens; at least 2 are needed",
                                 decoded_.size(), n));
    }
    return {};
  }

  std::vector<Transform> transforms_to_measure() const {
    if (decoded_.size() < kFewestForHeldOut) {
      return {};
    }
    if (!options_.transform) {
      return {std::begin(kAllTransforms), std::end(kAllTransforms)};
    }
    return options_.held_out ? std::vector{*options_.transform} : std::vector<Transform>{};
  }

  Status measure_held_out(const std::vector<Transform>& transforms) {
    std::vector<TransformQuality>& found = prepared_.result.held_out;
    if (decoded_.size() < kFewestForHeldOut) {
      prepared_.result.warnings.push_back(fmt::format(
          "{} requests are too few to measure held-out quality ({} are needed); the transform is {}",
          decoded_.size(), kFewestForHeldOut, name_of(prepared_.transform)));
      return {};
    }
    return timed("held-out", [&]() -> Status {
      const Halves halves = split_in_halves(trace_, decoded_, options_.seed);
      for (const Transform transform : transforms) {
        const auto quality = held_out_rho(backend_, trace_, halves, transform, options_.max_layers,
                                          [&] { return steps_.advance(); });
        if (!quality) {
          return failure(quality.error());
        }
        found.push_back({transform, quality->rho, quality->layers});
      }
      if (!options_.transform) {
        prepared_.transform = best_of(found);
      }
      return {};
    });
  }

  /// The best held-out; ties go to fewer layers on the wire, then to the earlier in the list.
  static Transform best_of(const std::vector<TransformQuality>& found) {
    return std::min_element(found.begin(), found.end(),
                            [](const TransformQuality& a, const TransformQuality& b) {
                              return a.held_out_rho != b.held_out_rho ? a.held_out_rho > b.held_out_rho
                                                                      : a.layers < b.layers;
                            })
        ->transform;
  }

  /// Weights from every request; rho over the pairs of those that decoded something: the others have no
  /// decode use to compare with.
  Status select() {
    std::unique_ptr<LayerScorer> scorer;
    const Status compared = timed("layer similarities", [&]() -> Status {
      prepared_.idf = idf_of(trace_, requests_, prepared_.transform);
      auto made = backend_.layer_scorer(
          prefill_features(trace_, decoded_, layers_, prepared_.transform, prepared_.idf),
          decode_features(trace_, decoded_));
      if (!made) {
        return failure(made.error());
      }
      scorer = std::move(*made);
      return {};
    });
    if (!compared) {
      return compared;
    }
    return timed("layer selection", [&]() -> Status {
      auto selection = select_layers(*scorer, layers_.size(), options_.max_layers,
                                     [&](std::size_t, std::size_t) { return steps_.advance(); });
      if (!selection) {
        return failure(selection.error());
      }
      for (const std::size_t layer : selection->order) {
        prepared_.result.layer_order.push_back(trace_.layers[layer]);
      }
      prepared_.result.layer_rhos = selection->rhos;
      prepared_.selection = std::move(*selection);
      return {};
    });
  }

  Status compare() {
    return timed("request similarities", [&]() -> Status {
      prepared_.signatures = unit_signatures(prefill_features(trace_, requests_, prepared_.selection.kept(),
                                                              prepared_.transform, prepared_.idf));
      auto similarities = backend_.similarities(prepared_.signatures);
      if (!similarities) {
        return failure(similarities.error());
      }
      prepared_.similarities = std::move(*similarities);
      prepared_.result.label_gap = label_gap(prepared_.signatures, trace_.labels);
      return {};
    });
  }

  template <class Body>
  Status timed(const char* stage, Body body) {
    return calibrator::timed(clock_, prepared_.result.times, stage, body);
  }

  const signature::Trace& trace_;
  const FitOptions& options_;
  FitBackend& backend_;
  const Clock& clock_;
  Steps& steps_;

  std::vector<std::size_t> requests_;  ///< all
  std::vector<std::size_t> decoded_;   ///< those with decode tokens
  std::vector<std::size_t> layers_;    ///< all
  Preparation prepared_;
};

}  // namespace

Result<Preparation> prepare_fit(const signature::Trace& trace, const FitOptions& options, FitBackend& backend,
                                const Clock& clock, std::size_t clusterings, Steps& steps) {
  return Preparer(trace, options, backend, clock, steps).run(clusterings);
}

}  // namespace eldr::calibrator
