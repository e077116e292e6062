/** What a 200 of ingest tells the client; a setting of the tenant. */

/**
 * `full`: everything, flags included. `interface`: the three fields that the public interface names
 * and `event_id`, so that a phone does not learn what was found on it.
 */
export const ingestAnswers = ['full', 'interface'] as const
export type IngestAnswer = (typeof ingestAnswers)[number]
