/**
 * Bounds of every HTTP listener: bodies, headers, connections, and the texts that requests carry.
 */

/** Largest ingest body. Real SDK batches are 1 to 4 KB, so 64 KiB is sixteen times the largest. */
export const bodyBytesMax = 64 * 1024

/**
 * Largest body of the routes that anyone may call: signing in, invitations. The longest is the code
 * of an identity provider, of some 2 KB. 8,192 connections with half of one are 32 MB, and
 * `incompleteBodiesBytesMax` bounds them before.
 */
export const publicBodyBytesMax = 8 * 1024

/** Largest body of a disposition: a note of 2,000 characters, each as an escape of six bytes. */
export const dispositionBodyBytesMax = 16 * 1024

/** Largest body of a change of many dispositions: 500 ids of 64 characters, and such a note. */
export const dispositionsBodyBytesMax = 52 * 1024

/**
 * Pieces of a body: 32 and one for each 256 bytes. A piece is a chunk or a read of the connection,
 * and costs Node two to four microseconds, so 64 bytes cost one at most. Clients
 * send chunks of kilobytes, and the smallest usual packet has 536 bytes.
 */
export const chunksMin = 32
export const payloadBytesPerChunk = 256

/**
 * Bytes of a chunked request besides its payload: chunk sizes and extensions. Node counts a read of
 * 64 KiB before its payload is known, so it is three of them.
 */
export const framingBytesMax = 192 * 1024

/**
 * Requests of one connection that wait for their answers. Clients that pipeline at all have a few;
 * each takes some 5 KB, so 1,024 connections of one address hold 80 MB at most.
 */
export const pipelinedRequestsMax = 16

/**
 * What is discarded of a connection that ends while its client still sends, and for how long after
 * the answer. Nothing of it is parsed: 1 MiB takes some 0.4 ms. A body that is too large by mistake
 * is mostly smaller.
 */
export const discardedBytesMax = 1024 * 1024
export const lingerMs = 1_000

/**
 * How long such a connection may wait for its last answers: a submission is answered within a
 * second in the queue and two of its publish, and a client that reads nothing is cut off.
 */
export const stoppedMsMax = 10_000

/** Connections of one process, idle ones included, at about 10 KB each. */
export const connectionsMax = 8_192

/**
 * Headers of a request. A submission has eight and a proxy adds some ten. Each costs Node about a
 * tenth of a microsecond, so any head costs at most some ten microseconds.
 */
export const headersCountMax = 100

/**
 * How long a connection may live without a valid signature, key or token, unless one of its
 * requests is in progress. A request lasts ten seconds at most, so the connection is gone within
 * twenty. An incomplete head is answered with 408 after five to six seconds, before this.
 */
export const unauthenticatedMs = 7_000

/**
 * Unauthenticated connections of one source address (an IPv4 address, 64 bits of IPv6): an eighth
 * of all, so it takes eight addresses to fill a process. It is also as many as a load balancer that
 * is missing from `TRUSTED_PROXIES` opens at once.
 */
export const unauthenticatedPerSourceMax = 1_024

/** Connections of one source address in all: half, so no single client fills a process. */
export const connectionsPerSourceMax = 4_096

/**
 * Bytes of incomplete bodies, over all connections: 256 of the largest. At 2,000 submissions/s of
 * 2 KB that each take 100 ms to arrive it is 0.4 MB.
 */
export const incompleteBodiesBytesMax = 16 * 1024 * 1024

/**
 * Connections of an internal listener. Health checks, readiness checks and scrapes of ten machines
 * need some 30.
 */
export const internalConnectionsMax = 128

/** Longest path segment that is an id, decoded, in characters. A longer one is a 414. */
export const pathPartCharactersMax = 2_048

/**
 * Answers kept for the idempotency keys of one caller, for a day: of 2 KB each 20 MB. A case tool
 * that sets a disposition every ten seconds needs 8,640.
 */
export const idempotentAnswersMax = 10_000

/** `Retry-After` of a 503, in seconds. */
export const retryAfterSeconds = 1

/** Longest webhook URL, note and tenant name that an operator can save, in characters. */
export const urlCharactersMax = 2_048
export const noteCharactersMax = 2_000
export const nameCharactersMax = 200

/**
 * API keys and cookies of strangers that this process does not know are looked up together: one
 * query at a time over one connection to Postgres, so 256 of a millisecond each answer more guesses
 * than a process can receive. Of one source address 512 wait, of all as many as there are
 * connections; at 200 bytes each that is 1.6 MB.
 */
export const guessesPerQuery = 256
export const guessesWaitingPerSourceMax = 512
export const guessesWaitingMax = connectionsMax

/**
 * How long the metadata of the identity provider, or its outage, is remembered: an outage that
 * hangs costs one sign-in in ten seconds its five, and many sign-ins send it no more.
 */
export const oidcMetadataKeptMs = 10_000
