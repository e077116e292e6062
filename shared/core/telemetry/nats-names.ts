/** Names of the NATS streams, subjects, durable consumers and KV buckets. */

/** Streams, subjects, buckets and durable consumers, one name each. */
export const telemetryStream = 'TELEMETRY'
export const telemetrySubject = 'telemetry.batch'
/** The header with the proof that an edge wrote a batch message, over the message alone. */
export const batchProofHeader = 'Proof'
/** Who stores events, and who decides on them once everything before them is stored. */
export const scorerConsumer = 'scorer'
export const deciderConsumer = 'decider'
export const alertsStream = 'ALERTS'
export const deliveryHintSubject = 'alerts.delivery'
export const deliveryConsumer = 'delivery'
export const deadLetterStream = 'DEAD_LETTERS'
export const deadLetterSubject = 'dead.telemetry'
/** KV bucket of the tenant directory's projection, and of what each edge has applied. */
export const tenantsBucket = 'tenants'
/** KV bucket of what edges report of requests still signed with a retired secret. */
export const staleSecretBucket = 'stale_secret_requests'
/** KV bucket of what edges claim to have accepted, for reconciliation. */
export const acceptedBucket = 'accepted'
