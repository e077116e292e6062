/** Bounds of tenants: their secrets, the directory of edges, keys of verdicts; and of operators. */
import type { Rate } from '../../http/rate-limit.ts'
import { verdictKeysStaleMsMax } from './rest-api.ts'

/** Bounds of the tenant directory: leases of edges, locks, and cached tenants and policies. */

/**
 * A credential lease: how long an edge may trust its copy after the last round trip that proved it
 * current. A rotation waits at most this long, plus a margin, for an edge that does not answer.
 */
export const leaseMs = 2_000

/** How often an edge renews its lease: four attempts within one lease. */
export const leaseRenewMs = 500

/** What a rotation waits beyond a lease, for timers that fire late. */
export const leaseMarginMs = 250

/**
 * An edge that has not read its own announcement for this long loads the directory again: a hundred
 * times what it normally takes, half of a lease.
 */
export const leaseStallMs = 1_000

/**
 * What one request to a bucket brings: ten of them load 10,000 tenants of 1 KB. The server ends a
 * connection that has 64 MB pending.
 */
export const bucketReadEntries = 1_000
export const bucketReadBytes = 8 * 1024 * 1024

/** An edge without an announcement for five leases is gone, and its announcement is removed. */
export const deadEdgeMs = 10_000

/**
 * SDK versions that are counted separately per tenant among requests signed with a retired secret.
 * A report has 32 times 170 bytes at most, whatever the holder of the secret sends.
 */
export const staleSecretVersionsMax = 32

/** How long a change of a tenant waits for another one: longer than a lease, and than most. */
export const tenantLockWaitMs = 10_000

/**
 * The longest rotation, once it holds the lock: two waits for edges, 10 s in which the edges may be
 * out of reach, and the longest lease of a webhook secret are 45 s. One that is still recorded as
 * running after this has lost its console.
 */
export const rotationMaxMs = 60_000

/** How long the person who rotated can come back for the new credentials: a call and a reload. */
export const rotationKeysKeptMs = 15 * 60_000

/**
 * How long a lease of named work lasts that its holder does not renew; it renews each quarter.
 * Others look for expired ones every few seconds (`takeoverMs`), so they have the work of a process
 * that hangs after 13 s, or after 20 s when it hangs within a transaction, which the server ends
 * after 15 s. A change of a tenant waits for longer than a lease of a dead console
 * (`tenantLockWaitMs`). A thread that computes, or a database that fails over, is away for a second
 * or two.
 */
export const workLeaseMs = 8_000

/** How often a console looks for leases of processes that have ended or hang. */
export const takeoverMs = 5_000

/** How long an erasure waits for a job of another console: longer than a lease. */
export const leaseWaitMs = 10_000

/** Connections of each thread of a console that take and renew leases: a millisecond each. */
export const leaseConnectionsMax = 2

/** Erasures that a console runs at once: each rewrites parts of the largest tables. */
export const erasuresAtOnceMax = 2

/** Erasures of one tenant that are not done; at some seconds each, half an hour of work. */
export const erasuresWaitingMax = 100

/**
 * How long an erasure looks for mentions of its id in each of Postgres and ClickHouse: enough for
 * the bodies of some ten million events of 2 KB. What is not read by then is not counted, and the
 * receipt says so.
 */
export const mentionsReadSecondsMax = 20

/** How long an erasure's row with its receipt stays after its end: as long as the audit log. */
export const erasuresKeptDays = 400

/**
 * Named API keys of one tenant in use: one for each of its systems, and room to replace all of
 * them.
 */
export const apiKeysMax = 100

/** Tenants that a cache holds; past this the least recently used ones are evicted. */
export const cachedTenantsMax = 10_000

/**
 * Bytes of a policy document. The default has 8 KB with every signal of the catalog. NATS carries
 * it to the edges in a message of at most 1 MiB.
 */
export const policyBytesMax = 256 * 1024

/** Bytes of policy documents in a cache, as JSON: a thousand of the default's size. */
export const policyCacheBytesMax = 8 * 1024 * 1024

/**
 * How long the directory keeps a policy document that no tenant uses any more. Events and edges in
 * progress need seconds. Later ones find it in Postgres.
 */
export const unusedPolicyMs = 60_000

/**
 * How long a verdict token counts: an app hands it on at once, and five minutes also cover a phone
 * that changes its network meanwhile.
 */
export const verdictLifetimeSeconds = 5 * 60

/**
 * How long verifiers and proxies may keep the verdict keys: as long as a token counts, so a key
 * that is withdrawn is trusted for no longer than a token that it signed would be, unless an api
 * process cannot read the keys: `verdictKeysStaleMsMax` comes on top then.
 */
export const verdictKeysCacheSeconds = 5 * 60

/** How far the clocks of edges, the console and verifiers may be apart. */
const verdictClockSkewSeconds = 60

/**
 * A key signs once it has been published for this long, eleven minutes: every copy of the keys from
 * before has expired by then, also one that an api process gave out of its memory while it had no
 * Postgres. A copy is that much older than its answer.
 */
export const verdictKeyPublishedMsMin =
  verdictKeysStaleMsMax + (verdictKeysCacheSeconds + verdictClockSkewSeconds) * 1000

/**
 * How long a replaced key stays published, once no edge signs with it any more: until its last
 * token has expired, by a clock that is behind. A token is signed up to two seconds before it is
 * sent, within the same minute.
 */
export const verdictKeyKeptMs = (verdictLifetimeSeconds + verdictClockSkewSeconds) * 1000

/** How often a console looks after the verdict keys: they change by hand, or once at the start. */
export const verdictKeysRoundMs = 1_000

/** Bounds of signing in and stepping up: how often passwords, codes and tokens may be tried. */

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
