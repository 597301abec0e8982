/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Proof of identity: both sides of a login show that they know a secret (PROTOCOL.md).
 */
#ifndef _KDBLK_AUTH_H_
#define _KDBLK_AUTH_H_

#include <crypto/sha2.h>
#include <linux/err.h>
#include <linux/kconfig.h>
#include <linux/string.h>

#include "compat.h"
#include "proto.h"

#if defined(KDBLK_HAVE_HMAC_SHA256) && IS_REACHABLE(CONFIG_CRYPTO_LIB_SHA256)
#define KDBLK_AUTH_LIB
#elif IS_BUILTIN(CONFIG_CRYPTO_HASH)
#define KDBLK_AUTH_SHASH
#include <crypto/hash.h>
#endif

/* crypto_memneq() was formerly in another header. */
#if defined(KDBLK_AUTH_SHASH) || \
	(defined(KDBLK_AUTH_LIB) && IS_REACHABLE(CONFIG_CRYPTO_LIB_UTILS))
#define KDBLK_AUTH_MEMNEQ
#ifdef KDBLK_HAVE_CRYPTO_UTILS
#include <crypto/utils.h>
#else
#include <crypto/algapi.h>
#endif
#endif

#define KDBLK_SECRET_MIN	16	/* characters */
#define KDBLK_SECRET_MAX	128

/* The first bytes of what is proven, so that neither side can use the proof of the other. */
#define KDBLK_ROLE_INITIATOR	"kdblk initiator"
#define KDBLK_ROLE_TARGET	"kdblk target\0\0\0"
#define KDBLK_ROLE_QUEUE	"kdblk queue\0\0\0\0"

struct kdblk_secret {
	size_t length;		/* 0: there is none */
	u8 text[KDBLK_SECRET_MAX];
#ifdef KDBLK_AUTH_SHASH
	struct crypto_shash *hmac;
#endif
};

static inline void kdblk_secret_clear(struct kdblk_secret *secret)
{
#ifdef KDBLK_AUTH_SHASH
	if (secret->length)
		crypto_free_shash(secret->hmac);
#endif
	memzero_explicit(secret, sizeof(*secret));
}

/**
 * kdblk_secret_read - make a secret of what has been written to a file
 * @new: the secret
 * @page: what has been written
 * @count: its length, with or without a newline at the end; an empty line: no secret
 *
 * Context: may sleep, and load modules.
 * Return: 0; -EINVAL: too short or too long; -EOPNOTSUPP: this kernel has no HMAC-SHA256.
 */
static inline int kdblk_secret_read(struct kdblk_secret *new, const char *page, size_t count)
{
	size_t length = count && page[count - 1] == '\n' ? count - 1 : count;

	memset(new, 0, sizeof(*new));
	if (length && (length < KDBLK_SECRET_MIN || length > KDBLK_SECRET_MAX))
		return -EINVAL;
#if defined(KDBLK_AUTH_SHASH)
	if (length) {
		new->hmac = crypto_alloc_shash("hmac(sha256)", 0, 0);
		if (IS_ERR(new->hmac))
			return -EOPNOTSUPP;
		if (crypto_shash_setkey(new->hmac, page, length)) {
			crypto_free_shash(new->hmac);
			return -EOPNOTSUPP;
		}
	}
#elif !defined(KDBLK_AUTH_LIB)
	if (length)
		return -EOPNOTSUPP;
#endif
	memcpy(new->text, page, length);	/* last: an error leaves nothing behind */
	new->length = length;
	return 0;
}

static inline int kdblk_hmac(const struct kdblk_secret *secret, const u8 *data, size_t size,
			     u8 *proof)
{
#if defined(KDBLK_AUTH_LIB)
	hmac_sha256_usingrawkey(secret->text, secret->length, data, size, proof);
	return 0;
#elif defined(KDBLK_AUTH_SHASH)
	return crypto_shash_tfm_digest(secret->hmac, data, size, proof);
#else
	return -EOPNOTSUPP;
#endif
}

/**
 * kdblk_secret_prove - compute a proof
 * @secret: the secret; not empty
 * @role: KDBLK_ROLE_INITIATOR, KDBLK_ROLE_TARGET or KDBLK_ROLE_QUEUE
 * @nonce: what the other side has chosen for this connection
 * @message: what is proven with it
 * @length: its length, at most that of struct kdblk_login
 * @proof: result
 *
 * Context: may sleep; allocates nothing.
 * Return: 0 or an errno.
 */
static inline int kdblk_secret_prove(const struct kdblk_secret *secret, const char *role,
				     const u8 *nonce, const void *message, size_t length,
				     u8 proof[SHA256_DIGEST_SIZE])
{
	struct {
		char role[sizeof(KDBLK_ROLE_INITIATOR)];
		u8 nonce[KDBLK_NONCE_LEN];
		u8 message[sizeof(struct kdblk_login)];
	} data;
	size_t size = offsetof(typeof(data), message) + length;

	memcpy(data.role, role, sizeof(data.role));
	memcpy(data.nonce, nonce, sizeof(data.nonce));
	memcpy(data.message, message, length);
	return kdblk_hmac(secret, (const u8 *)&data, size, proof);
}

/**
 * kdblk_queue_prove - compute the proof that a queue belongs to a session
 * @secret: the secret; not empty
 * @nonce: that of the acceptance of queue 0
 * @hello: private data of the queue's connection request; complete, but for its proof
 * @proof: result
 *
 * Context: may sleep; allocates nothing.
 * Return: 0 or an errno.
 */
static inline int kdblk_queue_prove(const struct kdblk_secret *secret, const u8 *nonce,
				    const struct kdblk_connect *hello,
				    u8 proof[KDBLK_QUEUE_PROOF_LEN])
{
	u8 all[SHA256_DIGEST_SIZE];
	int err = kdblk_secret_prove(secret, KDBLK_ROLE_QUEUE, nonce, hello,
				     offsetof(struct kdblk_connect, proof), all);

	if (!err)
		memcpy(proof, all, KDBLK_QUEUE_PROOF_LEN);
	return err;
}

/* Takes the same time however much of them is the same. */
static inline bool kdblk_proof_same(const u8 *a, const u8 *b, size_t length)
{
#ifdef KDBLK_AUTH_MEMNEQ
	return !crypto_memneq(a, b, length);
#else	/* a kernel without it */
	u8 differ = 0;
	size_t i;

	for (i = 0; i < length; i++)
		differ |= a[i] ^ b[i];
	return !differ;
#endif
}

#endif /* _KDBLK_AUTH_H_ */
