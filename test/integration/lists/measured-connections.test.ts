/**
 * Lists and what an edge measures of an address, together: what is denied by its address, operator
 * or country is blocked, and of what is allowed the facts are stored and the signals are not.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createNetworkData } from '#shared/io/network/network-data.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { writeMmdb } from '../../../deploy/local/network/mmdb-writer.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { bodyOf, send } from '../../support/telemetry/edge-rig.ts'
import { type ListRig, type ListTenant, startListRig } from '../../support/telemetry/list-rig.ts'

let folder: string
let rig: ListRig
let acme: ListTenant

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'measured-lists-'))
  const fact = { country: { iso_code: 'DE' }, autonomous_system_number: 64_500 }
  await writeFile(join(folder, 'city.mmdb'), writeMmdb([['8.8.0.0/16', fact]]))
  await writeFile(join(folder, 'vpn.txt'), '8.8.8.0/24\n')
  const metrics = createMetrics('test')
  const data = createNetworkData({ folder, log: testLog, metrics, wallMs: Date.now })
  await data.look()
  const options = { network: data.sources, trustedProxies: ['127.0.0.1'] }
  rig = await startListRig(Date.now, options)
})
afterAll(async () => {
  await rig?.stop()
  await rm(folder, { recursive: true })
})
beforeEach(async () => {
  acme = await rig.makeTenant()
})

async function list(list: 'allow' | 'deny', kind: string, id: string): Promise<string> {
  const path = `/tenants/${acme.tenantId}/lists`
  const { status, body } = await rig.call('POST', path, { list, kind, id, reason: 'test' })
  expect(status).toBe(201)
  return body.entry_id
}

/** What an event from an address becomes, by each edge. */
const sendFrom = (address: string) =>
  Promise.all(
    rig.both.map(async (edge) => {
      const { tenantId, secret } = acme
      const headers = { 'x-forwarded-for': address }
      const { status, body } = await send(edge, bodyOf(tenantId), { secret, headers })
      if (status !== 200) return status
      const { rasp_action: action, flags } = body as { rasp_action: string; flags: string[] }
      return `${action} ${flags.filter((flag) => /_LISTED|_ALLOWED/.test(flag)).join()}`.trim()
    }),
  )
const become = (address: string, wanted: string) =>
  until(`events from ${address} are ${wanted}`, async () =>
    (await sendFrom(address)).every((one) => one === wanted),
  )

describe('an event from a listed address', () => {
  it.each([
    ['network', '8.8.8.0/28', '8.8.8.15', '8.8.8.16'],
    ['network', '9.9.9.9', '9.9.9.9', '9.9.9.8'],
    ['network', '2a00:1450::/56', '2a00:1450::1', '2a00:1450:0:100::1'],
    ['asn', '64500', '8.8.9.9', '8.9.9.9'],
    ['country', 'DE', '8.8.9.9', '8.9.9.9'],
  ])('is blocked where the %s %s is denied, and no other', async (kind, id, within, beside) => {
    await list('deny', kind, id)
    await become(within, 'BLOCK DENY_LISTED')
    expect(await sendFrom(beside)).toEqual(['ALLOW', 'ALLOW'])
    expect(await sendFrom('127.0.0.1')).toEqual(['ALLOW', 'ALLOW'])
  })

  it('is stored with its facts and without its signals where it is allowed', async () => {
    const storedFrom = async (address: string) => {
      await sendFrom(address)
      const events = await rig.edges.readStored()
      const last = events.filter(({ tenant_id }) => tenant_id === acme.tenantId).at(-1)!
      const { connection, server_signals: signals, reasons } = last
      const listed = reasons.find(({ code }) => code === 'CONNECTION_ALLOWED')
      return { connection, signals: signals?.connection, listed }
    }
    const facts = { network: '8.8.8.0/24', country: 'DE', asn: 64_500, kinds: ['vpn'] }
    const signals = { country: 'DE', asn: 'AS64500', vpn: true }
    expect(await storedFrom('8.8.8.8')).toMatchObject({
      connection: facts,
      signals,
      listed: undefined,
    })
    const entryId = await list('allow', 'network', '8.8.8.8')
    await become('8.8.8.8', 'ALLOW CONNECTION_ALLOWED')
    expect(await storedFrom('8.8.8.8')).toMatchObject({
      connection: facts,
      signals: undefined,
      listed: { weight: 0, evidence: { entry_id: entryId, kind: 'network', reason: 'test' } },
    })
    expect(await storedFrom('8.8.8.9')).toMatchObject({ signals, listed: undefined })
  })

  it('is blocked where both lists have it', async () => {
    await list('allow', 'network', '8.8.8.0/24')
    await list('deny', 'country', 'DE')
    await become('8.8.8.8', 'BLOCK CONNECTION_ALLOWED,DENY_LISTED')
  })
})
