// SPDX-License-Identifier: Apache-2.0
// Brings one EldrPolicy, and all that belongs to it, from what is to what is wanted. Level-driven: it gets a
// key, reads everything anew and does what is missing; it may be interrupted after any write and called
// again.
//
// Everything is read from the API server and not from a cache, so no decision is ever made on an old picture;
// the informers only say when to look.
//
// Thread-safety: reconcile() may run on several threads for different keys, never for one key twice at once
// (the work queue sees to that).
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "lib/base/status.h"
#include "operator/phases/scope.h"

namespace eldr::op {

struct Reconciled {
  bool exists = false;  ///< false: the policy is gone, nobody needs to look again
  std::optional<std::chrono::nanoseconds> requeue_after;
};

/// Told what each policy depends on, to watch it. See watches.h.
class Interest {
 public:
  virtual ~Interest() = default;
  virtual void wants(const Scope& scope) = 0;
  virtual void forget(const ObjectKey& policy) = 0;
};

class Reconciler {
 public:
  /// `interest` may be null. Both must outlive it.
  explicit Reconciler(Environment environment, Interest* interest = nullptr)
      : env_(std::move(environment)), interest_(interest) {}

  /// An error makes the key come back with backoff; all of the policy's status is written before.
  Result<Reconciled> reconcile(const ObjectKey& key);

 private:
  void run_phases(Scope& scope);

  Environment env_;
  Interest* interest_;
};

}  // namespace eldr::op
