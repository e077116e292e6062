// Conditional requests: a 304 while an answer is the same, and the whole answer once it changed.
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addNote } from '#shared/io/alerts/alert-work-store.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { type ApiRig, acceptEvent, startApiRig } from '../../support/http/api-rig.ts'

let rig: ApiRig
let key: string
const tenantId = 'acme'
const sessions = 700
const alert = makeAlertCandidate({ tenantId, sessionId: 's' })
const accept = (session: number, deviceId = 'a/b') =>
  acceptEvent({
    tenantId,
    deviceId,
    sessionId: `s-${session}`,
    userId: 'u1',
    atMs: Date.parse('2026-03-01T09:00:00Z') + session * 1_000,
  })

beforeAll(async () => {
  rig = await startApiRig()
  key = await rig.addTenant(tenantId)
  await rig.alerts.raiseAlerts([alert], Date.now)
  await rig.telemetry.insertTelemetry(Array.from({ length: sessions }, (_, at) => accept(at)))
})
afterAll(() => rig?.close())

const get = (path: string, headers: Record<string, string> = {}) => rig.call(path, { key, headers })

/** Reads an answer and its tag. */
async function read(path: string, headers: Record<string, string> = {}) {
  const answer = await get(path, headers)
  expect(answer.status, answer.text).toBe(200)
  expect(answer.headers.etag).toMatch(/^W\/"[\w-]{22}"$/)
  return { text: answer.text, tag: answer.headers.etag!, answer }
}

const paths = () => ({
  alert: `/v1/di/alerts/${alert.alertId}`,
  device: '/v1/di/devices/a%2Fb',
  'device with a plain slash': '/v1/di/devices/a/b',
  user: '/v1/di/users/u1',
  event: `/v1/di/events/${accept(0).event_id}`,
})

describe.each(Object.keys(paths()) as (keyof ReturnType<typeof paths>)[])('%s', (name) => {
  it('is a 304 without a body for a client that has it', async () => {
    const { tag } = await read(paths()[name])
    const forms = [tag, tag.slice(2), '*', `"other", ${tag}`, `${tag},"x"`]
    for (const ifNoneMatch of forms) {
      const again = await get(paths()[name], { 'if-none-match': ifNoneMatch })
      expect([ifNoneMatch, again.status, again.body.length]).toEqual([ifNoneMatch, 304, 0])
      expect(again.headers).toMatchObject({ etag: tag, 'cache-control': 'no-store' })
      expect(again.headers).not.toHaveProperty('content-type')
      expect(again.headers).toHaveProperty('ratelimit')
      expect(again.headers).toHaveProperty('x-request-id')
    }
  })

  it('is sent to a client that has something else', async () => {
    const { text } = await read(paths()[name])
    for (const ifNoneMatch of ['"other"', 'W/"other"', '', 'not a tag', 'W/""']) {
      expect((await read(paths()[name], { 'if-none-match': ifNoneMatch })).text).toBe(text)
    }
  })
})

it('a compressed answer has the tag of the plain one, and both are confirmed', async () => {
  const plain = await read(paths().device)
  const accept = { 'accept-encoding': 'gzip' }
  const packed = await read(paths().device, accept)
  expect(packed.answer.headers['content-encoding']).toBe('gzip')
  expect(gunzipSync(packed.answer.body).toString()).toBe(plain.text)
  expect(packed.tag).toBe(plain.tag)
  const again = await get(paths().device, { ...accept, 'if-none-match': plain.tag })
  expect([again.status, again.body.length]).toEqual([304, 0])
  expect(again.headers).not.toHaveProperty('content-encoding')
})

it('a changed alert is sent, also one that was changed back, and one with a new note', async () => {
  const path = paths().alert
  const before = await read(path)
  const set = (disposition: 'CONFIRMED' | 'OPEN') =>
    rig.alerts.setDisposition({
      alertId: alert.alertId,
      scope: [tenantId],
      disposition,
      note: null,
      actor: 'ada@example.com',
    })
  await set('CONFIRMED')
  const changed = await read(path, { 'if-none-match': before.tag })
  expect(JSON.parse(changed.text)).toMatchObject({ disposition: 'CONFIRMED' })
  await set('OPEN')
  const back = await read(path, { 'if-none-match': before.tag })
  expect(JSON.parse(back.text)).toMatchObject({ disposition: 'OPEN' })
  expect((await get(path, { 'if-none-match': back.tag })).status).toBe(304)
  const scope = [tenantId]
  const note = { alertId: alert.alertId, scope, note: 'asked', actor: 'ada@example.com', most: 9 }
  await addNote(rig.postgres, note)
  const noted = await read(path, { 'if-none-match': back.tag })
  expect(JSON.parse(noted.text)).toMatchObject({ details: { notes: [{ note: 'asked' }] } })
})

it('one new session changes the device and the user, and no other device', async () => {
  await rig.telemetry.insertTelemetry([accept(0, 'other')])
  const other = await read('/v1/di/devices/other')
  const device = await read(paths().device)
  const user = await read(paths().user)
  await rig.telemetry.insertTelemetry([accept(sessions)])
  const changed = await read(paths().device, { 'if-none-match': device.tag })
  expect(JSON.parse(changed.text)).toMatchObject({ sessions_total: sessions + 1 })
  await read(paths().user, { 'if-none-match': user.tag })
  const same = await get('/v1/di/devices/other', { 'if-none-match': other.tag })
  expect(same.status).toBe(304)
})

it('an error has no tag and is never a 304', async () => {
  const unknown = await get('/v1/di/alerts/alr_unknown', { 'if-none-match': '*' })
  expect(unknown.status).toBe(404)
  expect(unknown.headers).not.toHaveProperty('etag')
  const stranger = await rig.call(paths().alert, { headers: { 'if-none-match': '*' } })
  expect(stranger.status).toBe(401)
})
