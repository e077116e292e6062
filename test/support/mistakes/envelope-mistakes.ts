/**
 * The usual mistakes in what a submission says beside its signals, in values, and in batches: what
 * is accepted in a sandbox tenant has a warning.
 */
import { signBody } from '#shared/core/telemetry/signature.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import {
  body,
  fields,
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

const meta = (change: object) => (right: Telemetry) => ({
  sdk_meta: { ...right.sdk_meta, ...change },
})
const scorer = (change: object) => (right: Telemetry) => ({
  scorer: { ...right.scorer, ...change },
})
const signals = (change: object) => (right: Telemetry) => ({
  signals: { ...right.signals, ...change },
})

const members: SubmissionMistake[] = [
  warned('userId', () => ({ userId: 'u' }), '$.userId', 'did you mean user_id?'),
  warned('uid', () => ({ uid: 'u' }), '$.uid', 'did you mean user_id?'),
  warned('customerId', () => ({ customerId: 'u' }), '$.customerId', 'nearest user_id'),
  warned('accountId', () => ({ accountId: 'u' }), '$.accountId', 'nearest account_id'),
  warned('a user in sdk_meta', meta({ user_id: 'u' }), '$.sdk_meta.user_id', 'nearest user_id'),
  warned('appVersion', () => ({ appVersion: '7' }), '$.appVersion', 'nearest app.version'),
  warned(
    'app.versionName',
    () => ({ app: { versionName: '7' } }),
    '$.app.versionName',
    'nearest app.version',
  ),
  warned('osVersion', () => ({ osVersion: '16' }), '$.osVersion', 'nearest device.os_version'),
  warned(
    'manufacturer',
    () => ({ device: { manufacturer: 'x' } }),
    '$.device.manufacturer',
    'nearest device.brand',
  ),
  warned('timestamp', () => ({ timestamp: 1 }), '$.timestamp', 'nearest occurred_at'),
  warned('the app as a text', () => ({ app: '7.1.0' }), '$.app', 'must be an object'),
  warned(
    'the version of the app as a number',
    () => ({ app: { version: 7 } }),
    '$.app.version',
    'a text',
  ),
]

const values: SubmissionMistake[] = [
  warned('a time in seconds', () => ({ occurred_at: 1_772_000_000 }), '$.occurred_at', 'seconds'),
  warned('a time in words', () => ({ occurred_at: 'yesterday' }), '$.occurred_at', 'is kept'),
  warned('a time in the future', () => ({ occurred_at: '2999-01-01T00:00:00Z' }), 'a day ahead'),
  warned('a score of 250', scorer({ rasp_score: 250 }), '$.scorer.rasp_score', 'from 0 to 100'),
  warned('allow', scorer({ rasp_action: 'allow' }), '$.scorer.rasp_action', 'nearest ALLOW'),
  warned('DENY', scorer({ rasp_action: 'DENY' }), 'is none of ALLOW, REVIEW, BLOCK'),
  warned(
    '0 and ALLOW of a client that computes no score',
    signals({ debugger: { frida_detected: true }, root: { magisk_detected: true } }),
    '$.scorer.rasp_score',
    'send -1 and an empty rasp_action',
  ),
  warned('Android', meta({ platform: 'Android' }), '$.sdk_meta.platform', 'nearest android'),
  warned('iPhone', meta({ platform: 'iPhone' }), '$.sdk_meta.platform', 'nearest ios'),
  warned('flutter', meta({ platform: 'flutter' }), 'is neither android nor ios'),
  warned('no SDK version', meta({ sdk_version: '' }), '$.sdk_meta.sdk_version', 'is no version'),
  warned(
    'a nil UUID',
    () => ({ device_id: '00000000-0000-0000-0000-000000000000' }),
    '$.device_id',
  ),
  warned('a guest', () => ({ user_id: 'guest' }), '$.user_id', 'is a placeholder'),
  warned(
    'one id for device and session',
    ({ device_id: id }) => ({ session_id: id }),
    '$.session_id equals device_id',
  ),
  warned(
    'the device as the user',
    ({ device_id: id }) => ({ user_id: id }),
    '$.user_id equals device_id',
  ),
  warned('no measured signal', () => ({}), '$.signals has no measured signal'),
  fields('a dot as an id', () => ({ device_id: '.' }), '$.device_id must not be . or ..'),
  fields('two dots as a user', () => ({ user_id: '..' }), '$.user_id must not be . or ..'),
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
  batch('an empty batch', () => batchOf(), ...invalid, '$.events has no event'),
  batch(
    'events as an object',
    (event) => `{"tenant_id":"bank","events":${event}}`,
    ...invalid,
    '$.events must be an array',
  ),
  batch(
    '101 events',
    (event) => batchOf(...Array<string>(101).fill(event)),
    ...invalid,
    '$.events has more than 100 events',
  ),
  batch(
    'a batch of 600 KiB',
    (event) => batchOf(event.replace('{', `{"x":"${'x'.repeat(600_000)}",`)),
    413,
    'body_too_large',
    '512 KiB',
  ),
  batch(
    'a comma after the last event',
    (event) => batchOf(`${event},`),
    ...invalid,
    '$ is not valid JSON at byte',
  ),
  batch(
    'an event of another tenant',
    (event) => batchOf(event.replace('"bank"', '"globex"')),
    200,
    null,
    'events[0] $.tenant_id must be the tenant of the batch',
  ),
  batch(
    'an event without its tenant',
    (event) => batchOf(event, event.replace('"tenant_id":"bank",', '')),
    200,
    null,
    'events[1] $.tenant_id is missing',
  ),
  batch(
    'an event without a session',
    (event) => batchOf(event, event, event.replace('"session_id"', '"sessionId"')),
    200,
    null,
    'events[2] $.session_id is missing',
  ),
]

export const envelopeMistakes: SubmissionMistake[] = [
  ...members,
  ...values,
  ...vocabularies,
  ...batches,
]
