/**
 * The request log in an edge's memory: bounded per tenant and in total, with unverified submissions
 * apart.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  requestLogEntriesMax,
  requestLogIdCharactersMax,
  requestLogReadBytes,
  requestLogTenantEntriesMax,
  requestLogWaitingMax,
} from '#shared/core/base/limits/ingest.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { Acceptance } from '../../../services/ingest/decide-submission.ts'
import { type Refusal, refusals } from '../../../services/ingest/refusals.ts'
import { createRequestLog } from '../../../services/ingest/request-log.ts'

const acceptance: Acceptance = {
  kind: 'accepted',
  tenantId: 'acme',
  telemetryStream: 1,
  receivedAtMs: 1_700_000_000_000,
  eventId: 'evt_1',
  deviceId: 'device-1',
  sdkVersion: '4.2.0',
  score: 12,
  action: 'ALLOW',
  hashedBody: null,
  head: '',
  answer: '',
  platform: 'android',
  unknownSignals: 0,
  verdict: null,
  rateLimit: null,
}
const detail = { errors: [{ path: '$.signals', message: 'is required' }] }
const invalidBody: Refusal = {
  kind: 'refused',
  reason: 'body',
  problem: new Problem('invalid_body', 'The body is not valid.', detail),
  verifiedTenantId: 'acme',
}
const bodyOf = (tenantId: string, device = 'd') =>
  Buffer.from(
    `{"tenant_id":"${tenantId}","device_id":"${device}","sdk_meta":{"sdk_version": "4.2.0"}}`,
  )
const startLog = () =>
  createRequestLog({ hasTenant: (tenantId) => tenantId.startsWith('acme'), wallMs: () => 7 })

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('the request log of an edge', () => {
  it('takes no identifier of a phone for the id of a refused submission', () => {
    const log = startLog()
    const sent = {
      device: { identifiers: { device_id: 'imei-1', sdk_version: 'imei-2' } },
      device_id: 'device-1',
      sdk_meta: { device_id: 'imei-3', sdk_version: '4.2.0' },
    }
    log.noteRefused(invalidBody, Buffer.from(JSON.stringify(sent)), 'req_1')
    const { device: identifiers } = sent
    log.noteRefused(invalidBody, Buffer.from(JSON.stringify({ device: identifiers })), 'req_2')
    expect(
      log.read('acme').entries.map(({ device_id: id, sdk_version: version }) => [id, version]),
    ).toEqual([
      ['device-1', '4.2.0'],
      [null, null],
    ])
  })

  it('has the answer of an accepted submission, and of a rejected one with its faults', () => {
    const log = startLog()
    log.noteAccepted(acceptance, 'req_1')
    log.noteRefused(invalidBody, bodyOf('acme'), 'req_2')
    const { since_ms: sinceMs, left_out: leftOut, entries } = log.read('acme')
    expect([sinceMs, leftOut]).toEqual([7, 0])
    expect(entries).toEqual([
      {
        kind: 'telemetry',
        at_ms: acceptance.receivedAtMs,
        request_id: 'req_1',
        status: 200,
        code: 'accepted',
        reason: null,
        detail: null,
        verified: true,
        device_id: 'device-1',
        sdk_version: '4.2.0',
        event_id: 'evt_1',
        rasp_score: 12,
        rasp_action: 'ALLOW',
      },
      {
        kind: 'telemetry',
        at_ms: 7,
        request_id: 'req_2',
        status: 400,
        code: 'invalid_body',
        reason: 'body',
        detail: '$.signals is required',
        verified: true,
        device_id: 'd',
        sdk_version: '4.2.0',
        event_id: null,
        rasp_score: null,
        rasp_action: null,
      },
    ])
    expect(log.read('acme-2').entries).toEqual([])
  })

  it('parses a rejected body only later, so that no response waits for it', () => {
    let queries = 0
    const log = createRequestLog({ hasTenant: () => ++queries > 0, wallMs: () => 7 })
    log.noteRefused(refusals.signatureInvalid, bodyOf('acme'), 'req_1')
    vi.advanceTimersByTime(19)
    expect(queries).toBe(0)
    vi.advanceTimersByTime(1)
    expect(queries).toBe(1)
    expect(log.read('acme').entries).toMatchObject([{ verified: false, status: 401 }])
  })

  it('reads as much of a body of an unknown tenant, so that its time does not reveal tenants', () => {
    const log = startLog()
    const reads = ['acme', 'else'].map((tenantId) => {
      const body = bodyOf(tenantId)
      const read = vi.spyOn(body, 'subarray')
      log.noteRefused(refusals.signatureInvalid, body, 'req_1')
      vi.advanceTimersByTime(20)
      return read.mock.calls
    })
    const start = [0, requestLogReadBytes]
    expect(reads[0]).toEqual([start, start])
    expect(reads[1]).toEqual(reads[0])
  })

  it('omits unverified submissions without a tenant, or with an unknown one', () => {
    const log = startLog()
    for (const body of [bodyOf('other'), Buffer.from('{}'), Buffer.from('not json')]) {
      log.noteRefused(refusals.signatureMissing, body, 'req_1')
    }
    expect(log.read('other').entries).toEqual([])
    expect(log.read('acme').entries).toEqual([])
  })

  it('evicts only other unverified entries for unverified submissions in a tenant’s name', () => {
    const log = startLog()
    log.noteAccepted(acceptance, 'req_accepted')
    log.noteRefused(invalidBody, bodyOf('acme'), 'req_refused')
    const strangers = requestLogTenantEntriesMax * 3
    for (let at = 0; at < strangers; at++) {
      log.noteRefused(refusals.signatureInvalid, bodyOf('acme'), `req_${at}`)
      vi.advanceTimersByTime(20)
    }
    const { entries } = log.read('acme')
    const ids = entries.map(({ request_id: id }) => id)
    expect(ids).toContain('req_accepted')
    expect(ids).toContain('req_refused')
    expect(ids).toContain(`req_${strangers - 1}`)
    expect(entries.filter(({ verified }) => !verified)).toHaveLength(requestLogTenantEntriesMax)
  })

  it('keeps the newest entries of a tenant, up to its bound', () => {
    const log = startLog()
    for (let at = 0; at < requestLogTenantEntriesMax + 5; at++) {
      log.noteAccepted(acceptance, `req_${at}`)
    }
    const ids = log.read('acme').entries.map(({ request_id: id }) => id)
    expect(ids).toHaveLength(requestLogTenantEntriesMax)
    expect(ids).not.toContain('req_4')
    expect(ids).toContain('req_5')
  })

  it('has space for as many tenants as entries, each with one', () => {
    const log = startLog()
    for (let tenant = 0; tenant <= requestLogEntriesMax; tenant++) {
      log.noteAccepted({ ...acceptance, tenantId: `acme-${tenant}` }, 'req_1')
    }
    expect(log.read('acme-0').entries).toHaveLength(0)
    expect(log.read('acme-1').entries).toHaveLength(1)
    expect(log.read(`acme-${requestLogEntriesMax}`).entries).toHaveLength(1)
  })

  it('counts the omitted entries of a flood, unverified ones separately', () => {
    const log = startLog()
    for (let at = 0; at < requestLogWaitingMax + 9; at++) {
      log.noteRefused(refusals.signatureInvalid, bodyOf('acme'), 'req_1')
    }
    log.noteRefused(invalidBody, bodyOf('acme'), 'req_own')
    const { entries, left_out: leftOut } = log.read('acme')
    expect(leftOut).toBe(9)
    expect(entries.map(({ request_id: id }) => id)).toContain('req_own')
  })

  it('truncates and escapes rejected texts, and reads only the start of a body', () => {
    const log = startLog()
    const device = `\u001b[31m\u202e é ${'x'.repeat(200)}`
    log.noteRefused(refusals.signatureInvalid, bodyOf('acme', device), 'req_1')
    const padded = `{"x":"${'x'.repeat(requestLogReadBytes)}",${bodyOf('acme').toString().slice(1)}`
    log.noteRefused(refusals.signatureInvalid, Buffer.from(padded), 'req_2')
    const { entries } = log.read('acme')
    expect(entries).toHaveLength(1)
    expect(entries[0]!.device_id).toMatch(/^\\u001b\[31m\\u202e \\u00e9 x+\.\.\.$/)
    expect(entries[0]!.device_id!.length).toBeLessThan(90)
  })

  it('keeps nothing of a rejected body but the entry', () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const heldBytes = () => {
      collect()
      return process.memoryUsage().heapUsed
    }
    const log = startLog()
    const tenants = 40
    const before = heldBytes()
    for (let at = 0; at < tenants * requestLogTenantEntriesMax; at++) {
      const device = `${'d'.repeat(40)}-${at}","user_id":"\u4e00${'x'.repeat(requestLogReadBytes)}`
      const body = bodyOf(`acme-${at % tenants}`, device)
      log.noteRefused(refusals.signatureInvalid, body, `req_${at}`)
      vi.advanceTimersByTime(20)
    }
    const entryBytes = (heldBytes() - before) / (tenants * requestLogTenantEntriesMax)
    expect(log.read('acme-0').entries).toHaveLength(requestLogTenantEntriesMax)
    expect(entryBytes).toBeLessThan(1_024)
  })

  it('distinguishes a replaced secret from a wrong one', () => {
    const log = startLog()
    const retired = { tenantId: 'acme', last4: 'abcd' }
    log.noteRefused({ ...refusals.signatureInvalid, retired }, bodyOf('acme'), 'req_1')
    expect(log.read('acme').entries).toMatchObject([{ reason: 'retired_secret', verified: false }])
  })
})

describe('with many tenants it', () => {
  it('keeps the entries of a quiet tenant, however many others are busy', () => {
    const log = startLog()
    const accept = (tenantId: string, requestId: string) =>
      log.noteAccepted({ ...acceptance, tenantId }, requestId)
    const own = ['req_a', 'req_b', 'req_c', 'req_d', 'req_e']
    for (const requestId of own) accept('acme-quiet', requestId)
    const tenants = 1_000
    for (let n = 0; n < 20 * tenants; n++) accept(`acme-${n % tenants}`, 'req_busy')
    const kept = log.read('acme-quiet').entries.map(({ request_id: id }) => id)
    expect(kept).toEqual(own)
    let all = 0
    for (let n = 0; n < tenants; n++) all += log.read(`acme-${n}`).entries.length
    expect(all).toBeLessThanOrEqual(requestLogEntriesMax)
    expect(all).toBeGreaterThan(0.8 * requestLogEntriesMax)
  })

  it('keeps the entry of a quiet tenant while strangers name many others', () => {
    const log = startLog()
    const refuse = (tenantId: string) => {
      log.noteRefused(refusals.signatureInvalid, bodyOf(tenantId), 'req_1')
      vi.advanceTimersByTime(20)
    }
    refuse('acme-quiet')
    for (let n = 0; n < 1.2 * requestLogEntriesMax; n++) refuse(`acme-${n % 300}`)
    expect(log.read('acme-quiet').entries).toHaveLength(1)
  })
})

describe('after an erasure it', () => {
  it('has nothing of the device, and all of other devices and tenants', () => {
    const log = startLog()
    const long = 'x'.repeat(2 * requestLogIdCharactersMax)
    const erased = ['gone', 'Gerät "1"', long]
    for (const deviceId of [...erased, 'stays']) {
      log.noteAccepted({ ...acceptance, deviceId }, 'req_1')
      log.noteAccepted({ ...acceptance, deviceId, tenantId: 'acme-2' }, 'req_1')
      const body = Buffer.from(JSON.stringify({ tenant_id: 'acme', device_id: deviceId }))
      log.noteRefused(invalidBody, body, 'req_2')
      log.noteRefused(refusals.signatureInvalid, body, 'req_3')
    }
    const devicesOf = (tenantId: string) =>
      log.read(tenantId).entries.map(({ device_id: id }) => id)
    log.forget('acme', erased)
    expect(devicesOf('acme')).toEqual(['stays', 'stays', 'stays'])
    expect(devicesOf('acme-2')).toHaveLength(4)
    log.forget('acme', null)
    expect(devicesOf('acme')).toEqual([])
    log.noteAccepted({ ...acceptance, deviceId: 'later' }, 'req_4')
    expect(devicesOf('acme')).toEqual(['later'])
  })
})
