/** Names of the NATS streams, subjects, durable consumers and KV buckets. */

export const telemetryStream = 'TELEMETRY'
export const telemetrySubject = 'telemetry.batch'
/** The header with the edge's proof that it wrote a batch message: a MAC over the message. */
export const batchProofHeader = 'Proof'
/** The header that names the traced events of a batch message; none when tracing is off. */
export const tracedEventsHeader = 'Traced-Events'
/** The consumer that stores events, and the one that decides them once all before are stored. */
export const scorerConsumer = 'scorer'
export const deciderConsumer = 'decider'
export const alertsStream = 'ALERTS'
export const deliveryHintSubject = 'alerts.delivery'
export const deliveryConsumer = 'delivery'
export const deadLetterStream = 'DEAD_LETTERS'
export const deadLetterSubject = 'dead.telemetry'
/** KV bucket of the tenant directory's projection and of the revision that each edge applied. */
export const tenantsBucket = 'tenants'
/**
 * The start of the subjects on which the server says that a key of `tenants` has a new entry:
 * followed by the key, without the entry. Edges then read on.
 */
export const directoryChanges = 'tenants.changed'
/** KV bucket of the edges' reports of requests that are still signed with a retired secret. */
export const staleSecretBucket = 'stale_secret_requests'
/** KV bucket of the counts of events that edges accepted, for reconciliation. */
export const acceptedBucket = 'accepted'
/** KV bucket of what must stay gone: erased subjects, retired keys, newest webhook secrets. */
export const removalsBucket = 'removals'
/** Queries of consoles for the request log of a tenant, which every edge answers. */
export const requestLogQuerySubject = 'request_log.query'
/** The answers to one query; `*` stands for any. */
export const requestLogAnswerSubject = (queryId: string): string => `request_log.answer.${queryId}`
/** On these the server tells that a stream, or a consumer, was deleted. */
export const lostSubjects = [
  '$JS.EVENT.ADVISORY.STREAM.DELETED.>',
  '$JS.EVENT.ADVISORY.CONSUMER.DELETED.>',
]
