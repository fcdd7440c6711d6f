// SPDX-License-Identifier: Apache-2.0
// Where marks of the request map go, so that none hides another.
#pragma once

#include <vector>

#include "calibrator/report/svg/drawing.h"

namespace eldr::calibrator::charts {

/// Moves discs of one radius apart until none overlap, each as little as its neighbours allow, inside `box`.
/// Where they cannot all fit they overlap as little as a few hundred steps reach. Deterministic.
std::vector<svg::Point> spread_apart(std::vector<svg::Point> centres, double radius, const svg::Box& box);

/// One of `colours` for each point, so that near points differ: in order, each takes the colour whose nearest
/// user is the farthest away. With at most `colours` points each has its own, in order.
std::vector<std::size_t> differing_colours(const std::vector<svg::Point>& points, std::size_t colours);

}  // namespace eldr::calibrator::charts
