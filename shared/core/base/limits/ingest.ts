/** Bounds of an edge: its queues, its publishes to JetStream, and what one tenant may send. */
import { connectionsMax } from './http.ts'

/**
 * Events in one JetStream message. 256 events of 4 KB are 1 MiB, the server's default
 * `max_payload`. The byte bound below is what usually ends a batch.
 */
export const batchEventsMax = 256

/** Bytes of one batch message: below NATS' default `max_payload` of 1 MiB, with its headers. */
export const batchBytesMax = 960 * 1024

/**
 * Events of one body of the batch address. A backend that sends the events of a second at once has
 * fewer, and a hundred are scored in two milliseconds, a fifth of `scoringSliceMs`.
 */
export const clientBatchEventsMax = 100

/**
 * Largest body of the batch address: a hundred events of 5 KB. An unsigned one costs an edge one
 * scan for the tenant, two HMACs and one SHA-256 over it: 2.0 to 3.6 ms, 4 to 7 ns a byte, as a
 * single submission does (4 to 9). It holds the event loop for a third of `scoringSliceMs`.
 */
export const clientBatchBytesMax = 512 * 1024

/**
 * Bytes of incomplete bodies of the batch address: 32 of the largest. They are counted apart, so
 * that they cut off no single submission.
 */
export const incompleteBatchesBytesMax = 16 * 1024 * 1024

/** Faults that the answer to a batch lists for one event: 100 events of 8 make 800 lines. */
export const clientBatchFaultsMax = 8

/**
 * Events that wait for the ack of one stream at an edge: twice what the publishes in flight hold,
 * so that the next messages are full. More would be scored earlier than they can be stored.
 * A client's batch is taken as a whole, so it is exceeded by 99 events at most.
 */
export const waitingEventsMax = 1_024

/**
 * Bytes of events that wait for the ack of one stream at an edge: 64 MiB of eight streams. It is
 * exceeded by one event, or one batch of a client, at most.
 */
export const waitingBytesMax = 8 * 1024 * 1024

/**
 * Submissions that an edge has read and not yet scored: one of each connection. At 20,000 events/s
 * that is 0.4 s. Beyond it the edge answers 503.
 */
export const queuedRequestsMax = 8_192

/** Bytes of submissions that an edge has read and not yet scored. */
export const queuedBytesMax = 64 * 1024 * 1024

/**
 * Longest wait of a submission in that queue. After it the answer is 503, because the time limit of
 * the request counts from when it was read.
 */
export const queuedMsMax = 1_000

/**
 * An edge whose oldest queued submission has waited this long is overloaded: it takes the newest
 * first. A turn of the event loop that scores for `scoringSliceMs` and waits for a publish is far
 * shorter. What is left of `queuedMsMax` is enough to answer it in time.
 */
export const newestFirstMs = 250

/**
 * How long an edge scores before it returns to the event loop for acks, timers and new requests.
 * One submission takes some 20 µs.
 */
export const scoringSliceMs = 10

/** Publishes in flight to JetStream: two hide the fsync behind the next publish. */
export const publishesInFlightMax = 2

/**
 * How long a publish of less than `lingerUntilEvents` waits for more events, from the start of the
 * publish before it; one of less than twice as many waits half as long. Each message costs the
 * broker some 0.5 ms of CPU for its fsync, however little it holds. Lingering adds some
 * milliseconds to an answer. At 2,000 events/s on two cores it makes events visible a hundred
 * milliseconds earlier, because scorers get the CPU.
 */
export const lingerMs = 10
export const lingerUntilEvents = 16

/**
 * How long an edge that starts waits for its first lease before it listens. Loading the directory
 * takes a second. Later clients get a 503 with the reason instead of no connection.
 */
export const firstLeaseMaxMs = 3_000

/** How long an edge waits for a publish ack before it answers 503. */
export const publishTimeoutMs = 2_000

/**
 * Time limit of one attempt of a publish. A healthy broker answers within milliseconds. Three
 * attempts fit into the whole time, so a lost ack costs a client only the wait.
 */
export const publishAttemptMs = 700

/**
 * What a submission counts in rates of bytes and in fair shares: its bytes, and this at least,
 * since its cost hardly depends on its size below that.
 */
export const ingestBytesMin = 1024

/**
 * Fair shares of an edge (`shared/core/http/fair-shares.ts`). A tenant counts as active for a second
 * after it sent something verified. Shares are computed at most every 100 ms and only while
 * something arrives, so a tenant is cut within 100 ms after another one came, and an idle edge does
 * nothing.
 */
export const activeTenantMs = 1_000
export const fairTickMs = 100

/**
 * An edge is busy from this part of its time on. While a tenant below its share is active, all
 * tenants together get this part of what the edge can take: 12,000 events/s of an edge with a core
 * of its own. The rest keeps waits short, also where scorers and servers use the same cores: a
 * machine of two cores that runs everything takes some 4,500 events/s, and half of that leaves a
 * fifth of its CPU free. Tenants that all want more than their share divide the whole edge.
 */
export const busyShare = 0.5

/**
 * The least that an edge counts as its capacity, in bytes per second: 2,700 events of 1.5 KB, which
 * an eighth of a core takes. Requests without a valid signature make an edge busy too. They must
 * not make it refuse tenants that send little.
 */
export const fairCapacityMin = 4 * 1024 ** 2

/** How much the estimate grows every 100 ms while the edge is not busy: 1.6 times in a second. */
export const fairCapacityGrowth = 1.05

/**
 * How long an edge delays the answer to a tenant over a limit, and how many answers it delays.
 * Clients that retry at once over 64 connections get 64 refusals a second instead of 5,000, which
 * would take half a core. Delayed answers occupy an eighth of the connections at most.
 */
export const refusalDelayMs = 1_000
export const delayedRefusalsMax = connectionsMax / 8

/**
 * The request log of an edge: the submissions of one tenant that it remembers, and those of all
 * tenants; of T tenants each keeps 9,000 / T at least. Accepted ones, refused ones and those
 * without a verified signature are bounded apart. An entry has 1 KB at most, and 2 KB with the
 * faults of a body, so the three hold 40 MB at most; without long ids it is 12 MB.
 */
export const requestLogTenantEntriesMax = 50
export const requestLogEntriesMax = 10_000

/**
 * Refused submissions that wait 20 ms until they are noted, verified and not verified ones apart,
 * and the bytes that are read of each: 2 × 16 bodies of 64 KiB are 2 MiB. Noting one takes some
 * 10 µs, so a flood of refusals costs an edge under 2 % of a core.
 */
export const requestLogWaitingMax = 16
export const requestLogReadBytes = 4 * 1024

/** Characters of an id, and of the faults of a body, that the request log keeps of a refused one. */
export const requestLogIdCharactersMax = 64
export const requestLogDetailCharactersMax = 200

/** Devices that an erasure names to the edges: of 256 characters 128 KB, below `max_payload`. */
export const requestLogForgetDevicesMax = 500

/**
 * How long a console waits for the request log of an edge: scoring holds an edge's event loop for
 * 10 ms. An edge that has not answered by then is named as silent.
 */
export const requestLogWaitMs = 1_000

/**
 * Tenants whose request log one console queries at once; more are refused with 429. Each edge
 * answers with 150 entries of 2.7 KB as JSON at most: 405 KB, below NATS' `max_payload`.
 */
export const requestLogQueriesMax = 16

/**
 * The shortest time between two queries of one tenant's request log by a console. An answer takes
 * an edge some 0.4 ms, so the 32 a second of all tenants cost it some 1.3 % of a core.
 */
export const requestLogPauseMs = 500
