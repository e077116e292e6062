/** Bounds of signing in and stepping up: how often passwords, codes and tokens may be tried. */
import type { Rate } from '../../http/rate-limit.ts'

/**
 * Tries at one account, and of one operator's session from one address: ten at once, then one a
 * minute, 1,450 a day. A code of six digits is right in three of a million at any moment, so a year
 * of them finds it with a probability of four fifths; a password of ours is not found at all. Each
 * wrong one is in the audit log long before.
 */
export const triesOfAccount: Rate = { perSecond: 1 / 60, burst: 10 }

/**
 * Tries of one operator's sessions from all addresses together that the operator has not signed in
 * from: twice those of one address. A stolen cookie does not become many tries by many addresses,
 * and does not lock the operator out where the operator is.
 */
export const triesOfOperator: Rate = { perSecond: 1 / 30, burst: 20 }

/** Tries from one address, an office for example: thirty at once, then one in five seconds. */
export const triesOfAddress: Rate = { perSecond: 0.2, burst: 30 }

/** Accounts, addresses, operators and pairs that are counted, at some 200 bytes each. */
export const triesCountedMax = 10_000

/**
 * Password hashes at once: two of strangers and one of callers that a sign-in is known of, so
 * neither delays the other. Each takes 64 MiB and a thread of Node's four for a third of a second.
 * Of each source address eight wait, and addresses take turns: an address with many guesses makes
 * another one wait for one of its hashes.
 */
export const strangerHashes = { perTenant: 2, total: 2, queuePerTenant: 8, waitMs: 6_000 } as const
export const knownHashes = { perTenant: 1, total: 1, queuePerTenant: 16, waitMs: 6_000 } as const
