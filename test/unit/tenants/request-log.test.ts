/** The request log of an edge: a share for each tenant, and nothing of what is forgotten. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import {
  requestLogEntriesMax,
  requestLogIdCharactersMax,
  requestLogTenantEntriesMax,
} from '#shared/core/base/limits/ingest.ts'
import { type Acceptance, refusals } from '../../../services/ingest/decide-submission.ts'
import { createRequestLog, type RequestLog } from '../../../services/ingest/request-log.ts'

let log: RequestLog
beforeEach(() => {
  vi.useFakeTimers()
  log = createRequestLog({ hasTenant: () => true, wallMs: () => 0 })
})
afterEach(() => {
  vi.useRealTimers()
})

let requests = 0
const accept = (tenantId: string, deviceId = 'd') =>
  log.noteAccepted({ tenantId, deviceId, receivedAtMs: 0 } as Acceptance, `req_${++requests}`)

/** Refuses a body that names a tenant, with its signature verified or not. */
function refuse(tenantId: string, deviceId: string, isVerified: boolean): void {
  const body = Buffer.from(JSON.stringify({ tenant_id: tenantId, device_id: deviceId }))
  const refusal = isVerified
    ? { ...refusals.notStored, verifiedTenantId: tenantId }
    : refusals.signatureInvalid
  log.noteRefused(refusal, body, `req_${++requests}`)
  vi.runAllTimers()
}

const countOf = (tenantId: string) => log.read(tenantId).entries.length
const devicesOf = (tenantId: string) => log.read(tenantId).entries.map((entry) => entry.device_id)

it('keeps the entries of a quiet tenant, however many others are busy', () => {
  for (let n = 0; n < 5; n++) accept('quiet', `kept-${n}`)
  const tenants = 1_000
  for (let n = 0; n < 20 * tenants; n++) accept(`busy-${n % tenants}`)
  expect(devicesOf('quiet')).toEqual(['kept-0', 'kept-1', 'kept-2', 'kept-3', 'kept-4'])
  let all = 0
  for (let n = 0; n < tenants; n++) all += countOf(`busy-${n}`)
  expect(all).toBeLessThanOrEqual(requestLogEntriesMax)
  expect(all).toBeGreaterThan(0.8 * requestLogEntriesMax)
})

it('keeps the entries of a quiet tenant while strangers name many others', () => {
  refuse('quiet', 'kept', false)
  for (let n = 0; n < 1.2 * requestLogEntriesMax; n++) refuse(`any-${n % 300}`, 'd', false)
  expect(devicesOf('quiet')).toEqual(['kept'])
})

it('bounds the entries of one tenant, and of more tenants than entries', () => {
  for (let n = 0; n < 2 * requestLogTenantEntriesMax; n++) accept('one', `d-${n}`)
  expect(countOf('one')).toBe(requestLogTenantEntriesMax)
  expect(devicesOf('one').at(-1)).toBe(`d-${2 * requestLogTenantEntriesMax - 1}`)
  for (let n = 0; n < requestLogEntriesMax + 100; n++) accept(`t-${n}`)
  expect(countOf('t-0')).toBe(0)
  expect(countOf(`t-${requestLogEntriesMax + 99}`)).toBe(1)
})

it('forgets a device in everything that it keeps of the tenant, and nothing else', () => {
  const long = 'x'.repeat(2 * requestLogIdCharactersMax)
  for (const id of ['gone', 'Gerät "1"', long, 'stays']) {
    accept('acme', id)
    refuse('acme', id, true)
    refuse('acme', id, false)
    accept('other', id)
  }
  log.forget('acme', ['gone', 'Gerät "1"', long])
  expect(devicesOf('acme')).toEqual(['stays', 'stays', 'stays'])
  expect(countOf('other')).toBe(4)
  log.forget('acme', null)
  expect(countOf('acme')).toBe(0)
  accept('acme', 'later')
  expect(devicesOf('acme')).toEqual(['later'])
})
