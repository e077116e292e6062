/**
 * The usual mistakes in what a submission says beside its signals, in values, and in batches: what
 * is accepted in a sandbox tenant has a warning.
 */
import { signBody } from '#shared/core/telemetry/signature.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import {
  body,
  mistake,
  type RightSubmission,
  type SubmissionMistake,
  type,
} from './ingest-mistakes.ts'

/** Accepted, with a warning that has the texts. */
const warned = (
  name: string,
  change: (right: Telemetry) => Record<string, unknown>,
  ...says: string[]
): SubmissionMistake =>
  body(name, (_, { fields: own }) => JSON.stringify({ ...own, ...change(own) }), 200, null, ...says)

const signals = (change: object) => (right: Telemetry) => ({
  signals: { ...right.signals, ...change },
})

// test/unit/telemetry/warnings/envelope-warnings.test.ts has every warning of this kind.
const members: SubmissionMistake[] = [
  warned('userId', () => ({ userId: 'u' }), '$.userId', 'did you mean user_id?'),
  warned('a time in seconds', () => ({ occurred_at: 1_772_000_000 }), '$.occurred_at', 'seconds'),
  warned('a guest', () => ({ user_id: 'guest' }), '$.user_id', 'is a placeholder'),
  warned(
    '0 and ALLOW of a client that computes no score',
    signals({ debugger: { frida_detected: true }, root: { magisk_detected: true } }),
    '$.scorer.rasp_score',
    'send -1 and an empty rasp_action',
  ),
]

const vocabularies: SubmissionMistake[] = [
  warned(
    'an unknown boot state',
    signals({ root: { verified_boot_state: 'unlocked' } }),
    '$.signals.root.verified_boot_state',
    'VERIFIED, SELF_SIGNED, UNVERIFIED, FAILED',
  ),
  warned(
    'a misspelt verdict',
    signals({ tamper: { pi_device_verdict: ['MEETS_BASIC_INTEGRTY'] } }),
    'nearest MEETS_BASIC_INTEGRITY',
  ),
  warned(
    'a number as a level',
    signals({ tamper: { pi_recent_activity: '4' } }),
    'it can be LEVEL_1, LEVEL_2',
  ),
  warned(
    'a pasted payload',
    signals({ root: Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`k${n}`, true])) }),
    '32 or more names',
    'di signals free',
  ),
]

const batchPath = '/v1/rasp/ingest/batch'

/** Events of a batch that are made of the right one, and the members around them. */
const batch = (
  name: string,
  make: (event: string, right: RightSubmission) => string,
  ...answer: [status: number, code: string | null, ...says: string[]]
): SubmissionMistake =>
  mistake(
    name,
    (right) => {
      const sent = make(JSON.stringify(right.fields), right)
      const headers = { ...type, 'x-service-signature': signBody(sent, right.secret) }
      return { method: 'POST', path: batchPath, headers, body: sent }
    },
    answer,
  )
const batchOf = (...events: string[]) => `{"tenant_id":"bank","events":[${events.join(',')}]}`
const invalid = [400, 'invalid_body'] as const

// test/unit/telemetry/client-batch has every fault of a batch.
const batches: SubmissionMistake[] = [
  mistake(
    'a batch without a signature',
    ({ fields: own }) => {
      const sent = batchOf(JSON.stringify(own))
      return { method: 'POST', path: batchPath, headers: type, body: sent }
    },
    [401, 'signature_missing', 'X-Service-Signature'],
  ),
  batch('a list of events', (event) => `[${event}]`, 401, 'signature_invalid', 'tenant_id'),
  batch('one event, not in a batch', (event) => event, ...invalid, 'belongs into each event'),
  batch('no events', () => '{"tenant_id":"bank"}', ...invalid, '$.events is missing'),
  batch(
    'a batch of 600 KiB',
    (event) => batchOf(event.replace('{', `{"x":"${'x'.repeat(600_000)}",`)),
    413,
    'body_too_large',
    '512 KiB',
  ),
  batch(
    'an event of another tenant',
    (event) => batchOf(event.replace('"bank"', '"globex"')),
    200,
    null,
    'events[0] $.tenant_id must be the tenant of the batch',
  ),
]

export const envelopeMistakes: SubmissionMistake[] = [...members, ...vocabularies, ...batches]
