// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/tls.h"

#include <memory>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace eldr::kube {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, Free>;
using Certificate = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;

Bio reader_of(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Certificate next_certificate(BIO* bio) {
  return Certificate(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
}

std::string origin_of(const PemSource& source) { return source.file.empty() ? "inline data" : source.file; }

Status load_authorities(SSL_CTX* context, const PemSource& source) {
  auto pem = source.read();
  if (!pem) {
    return failure(pem.error().with_context("certificate-authority"));
  }
  X509_STORE* store = X509_STORE_new();
  SSL_CTX_set_cert_store(context,
                         store);  // owned by the context from here; replaces the system's authorities
  const Bio bio = reader_of(*pem);
  int loaded = 0;
  while (const Certificate certificate = next_certificate(bio.get())) {
    loaded += X509_STORE_add_cert(store, certificate.get());
  }
  ERR_clear_error();  // the end of the PEM text reads as an error
  if (loaded == 0) {
    return failure(Code::kInvalid, "certificate-authority: no PEM certificate in " + origin_of(source));
  }
  return {};
}

Status load_identity(SSL_CTX* context, const PemSource& certificates, const PemSource& key) {
  auto certificate_pem = certificates.read();
  if (!certificate_pem) {
    return failure(certificate_pem.error().with_context("client-certificate"));
  }
  auto key_pem = key.read();
  if (!key_pem) {
    return failure(key_pem.error().with_context("client-key"));
  }
  const Bio bio = reader_of(*certificate_pem);
  const Certificate leaf = next_certificate(bio.get());
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    ERR_clear_error();
    return failure(Code::kInvalid, "client-certificate: no PEM certificate in " + origin_of(certificates));
  }
  while (const Certificate intermediate = next_certificate(bio.get())) {
    SSL_CTX_add1_chain_cert(context, intermediate.get());
  }
  ERR_clear_error();
  const Bio key_bio = reader_of(*key_pem);
  // An encrypted key would ask for its pass phrase on the terminal: the empty one given here is refused
  // instead.
  const Key private_key(PEM_read_bio_PrivateKey(
      key_bio.get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
  if (!private_key || SSL_CTX_use_PrivateKey(context, private_key.get()) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    return failure(Code::kInvalid,
                   "client-key: " + origin_of(key) +
                       " holds no unencrypted PEM key that belongs to the client certificate");
  }
  return {};
}

/// OpenSSL's own verification, and a note of what it found wrong.
int verify_and_note(X509_STORE_CTX* chain, void* argument) {
  const int good = X509_verify_cert(chain);
  if (good != 1) {
    const char* text = X509_verify_cert_error_string(X509_STORE_CTX_get_error(chain));
    static_cast<TlsProblem*>(argument)->set(std::string("the server's certificate is refused: ") + text);
  }
  return good;
}

Status load_everything(SSL_CTX* context, const Config& config) {
  if (!config.certificate_authority.empty()) {
    if (auto loaded = load_authorities(context, config.certificate_authority); !loaded) {
      return loaded;
    }
  }
  if (!config.client_certificate.empty()) {
    return load_identity(context, config.client_certificate, config.client_key);
  }
  return {};
}

}  // namespace

void TlsProblem::set(std::string text) {
  const std::lock_guard lock(mutex_);
  text_ = std::move(text);
}

std::string TlsProblem::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(text_, {});
}

Status configure_tls(SSL_CTX* context, const Config& config, TlsProblem* problem) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cert_verify_callback(context, &verify_and_note, problem);
  return load_everything(context, config);
}

}  // namespace eldr::kube
