// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrator/samples.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>

namespace eldr::calibrator::samples {
namespace {

using signature::Transform;

/// Top-k distinct experts of one token.
std::vector<std::uint32_t> draw_experts(std::mt19937_64& engine, const std::vector<double>& preference,
                                        std::uint32_t top_k) {
  std::vector<double> weights = preference;
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t k = 0; k < top_k; ++k) {
    std::discrete_distribution<std::uint32_t> draw(weights.begin(), weights.end());
    chosen.push_back(draw(engine));
    weights[chosen.back()] = 0;
  }
  return chosen;
}

}  // namespace

signature::Trace trace(std::uint64_t seed, const TraceShape& shape) {
  std::mt19937_64 engine(seed);
  signature::Trace trace;
  trace.model = "test-moe";
  trace.experts = shape.experts;
  trace.top_k = shape.top_k;
  trace.layers.resize(shape.layers);
  std::iota(trace.layers.begin(), trace.layers.end(), 1);
  std::vector<std::vector<std::vector<double>>> preferences(shape.domains);  // [domain][layer][expert]
  std::gamma_distribution<double> gamma(0.3, 1.0);
  for (auto& layers : preferences) {
    layers.assign(shape.layers, std::vector<double>(shape.experts));
    for (std::size_t l = 0; l < shape.layers; ++l) {
      for (double& weight : layers[l]) {
        weight = l + 1 == shape.layers ? 1.0 : gamma(engine) + 0.01;
      }
    }
  }
  const std::size_t row = shape.layers * shape.experts;
  trace.prefill_counts.assign(shape.requests * row, 0);
  trace.decode_counts.assign(shape.requests * row, 0);
  for (std::size_t r = 0; r < shape.requests; ++r) {
    const std::size_t domain = r % shape.domains;
    const std::uint32_t prompt =
        shape.prompt_tokens / 2 + static_cast<std::uint32_t>(engine() % shape.prompt_tokens);
    trace.labels.push_back("d" + std::to_string(domain));
    trace.prompt_tokens.push_back(prompt);
    trace.decode_tokens.push_back(shape.decode_tokens);
    for (std::uint32_t token = 0; token < prompt + shape.decode_tokens; ++token) {
      auto& counts = token < prompt ? trace.prefill_counts : trace.decode_counts;
      for (std::size_t l = 0; l < shape.layers; ++l) {
        for (const std::uint32_t e : draw_experts(engine, preferences[domain][l], shape.top_k)) {
          ++counts[r * row + l * shape.experts + e];
        }
      }
    }
  }
  return trace;
}

std::optional<std::string> real_data() {
  const char* folder = std::getenv("ELDR_REAL_DATA");
  return folder != nullptr && *folder != 0 ? std::optional<std::string>(folder) : std::nullopt;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] - values[order[first]] < 1e-9) {
      ++end;
    }
    for (std::size_t i = first; i < end; ++i) {
      result[order[i]] = (static_cast<double>(first + 1) + static_cast<double>(end)) / 2;
    }
    first = end;
  }
  return result;
}

double pearson(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

double spearman(const std::vector<double>& x, const std::vector<double>& y) {
  return pearson(ranks(x), ranks(y));
}

std::vector<double> pair_cosines(const std::vector<std::vector<double>>& rows) {
  std::vector<double> cosines;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      const auto dot = [](const auto& a, const auto& b) {
        return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
      };
      const double lengths = std::sqrt(dot(rows[i], rows[i]) * dot(rows[j], rows[j]));
      cosines.push_back(lengths > 0 ? dot(rows[i], rows[j]) / lengths : 0.0);
    }
  }
  return cosines;
}

std::vector<std::vector<double>> signatures(const signature::Trace& trace,
                                            const std::vector<std::size_t>& layers, Transform transform) {
  const auto n = static_cast<double>(trace.requests());
  std::vector<std::vector<double>> rows(trace.requests());
  for (const std::size_t layer : layers) {
    for (std::size_t e = 0; e < trace.experts; ++e) {
      const std::size_t cell = layer * trace.experts + e;
      double df = 0;
      for (std::size_t r = 0; r < trace.requests(); ++r) {
        df += trace.prefill(r)[cell] > 0 ? 1 : 0;
      }
      for (std::size_t r = 0; r < trace.requests(); ++r) {
        const double count = trace.prefill(r)[cell];
        rows[r].push_back(transform == Transform::kCountIdf    ? count * std::log((n + 1) / (df + 1))
                          : transform == Transform::kCount     ? count
                          : transform == Transform::kSqrtCount ? std::sqrt(count)
                                                               : (count > 0 ? 1.0 : 0.0));
      }
    }
  }
  return rows;
}

double rho(const signature::Trace& trace, const std::vector<std::size_t>& layers, Transform transform) {
  std::vector<std::vector<double>> decode(trace.requests());
  for (std::size_t r = 0; r < trace.requests(); ++r) {
    decode[r].assign(trace.decode(r).begin(), trace.decode(r).end());
  }
  return spearman(pair_cosines(signatures(trace, layers, transform)), pair_cosines(decode));
}

}  // namespace eldr::calibrator::samples
