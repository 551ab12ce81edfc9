/* keyring.h - the private keys in a folder of certificates (tls/cert_dir.h), by their ids.
 *
 * The folder is looked at every CERT_LOOK_MS. Of each folder the last KEYRING_KEPT keys are kept,
 * those that are used before others: the gateway may have an old certificate still, or refuse the
 * new one. A file that cannot be used changes nothing, and the log says why.
 */
#pragma once

#include "net/timer.h"
#include "tls/cert_dir.h"
#include "tls/sign_key.h"

enum { KEYRING_KEPT = 4 };

struct keyring;

/* `dir`, opened, is taken in any case. The first look is done when this returns. */
int keyring_open(struct keyring **ret, struct loop *l, int dir, struct err *err) NODISCARD;
void keyring_close(struct keyring *k); /* wiped; NULL is fine */

const struct sign_key *keyring_find(struct keyring *k, const uint8_t id[static SIGN_ID]);
size_t keyring_count(const struct keyring *k);
