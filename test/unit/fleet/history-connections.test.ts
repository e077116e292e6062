/** Where the events of a history come from: each phone's own address, as an edge with data sees it. */
import { createSecretKey } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { decodeBatch, toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import { createNetworkData } from '#shared/io/network/network-data.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { acceptVisits, type EdgeTenant } from '../../../deploy/fleet/history/history-edge.ts'
import { createHistoryInstalls } from '../../../deploy/fleet/history/history-installs.ts'
import { makeHistory } from '../../../deploy/fleet/history/history-plan.ts'
import { writeDemoNetwork } from '../../../deploy/local/network/demo-network.ts'
import { encodeBatch, toWaiterBytes } from '../../../services/ingest/group-commit.ts'
import { testLog } from '../../support/http/console-rig.ts'

const startMs = Date.UTC(2026, 2, 2)
const days = 7
const tenant: EdgeTenant = {
  tenantId: 'history',
  hmacSecret: 'the secret of the simulated history',
  policy: defaultPolicy,
  policyVersion: 1,
  policyHash: toPolicyHash(defaultPolicy),
}

function makeEvents(network?: NonNullable<EdgeTenant['network']>) {
  const model = makeHistory(1, 200, { startMs, days, visitDays: days + 1 })
  const installs = createHistoryInstalls({ seed: 1, tenantId: 'history' })
  const edge = network === undefined ? tenant : { ...tenant, network }
  const span = { startMs, endMs: startMs + days * dayMs }
  return acceptVisits(model, edge, span, installs).map(({ head, body, phone, eventId }) => {
    const message = encodeBatch([{ head, body, bytes: toWaiterBytes(head, body), arrivedMs: 0 }])
    const { connection, install } = decodeBatch(message, toStreamOffset(0, 1)).events[0]!
    return { eventId, phone, connection, isOfInstall: install !== undefined }
  })
}

let dataDir: string
let events: ReturnType<typeof makeEvents>
beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'history-network-'))
  const data = createNetworkData({
    folder: writeDemoNetwork(dataDir, startMs),
    measuresDocumentation: true,
    log: testLog,
    metrics: createMetrics('test'),
    wallMs: () => startMs,
  })
  await data.look()
  const addressKey = createSecretKey(Buffer.alloc(32, 1))
  events = makeEvents({ sources: data.sources()!, addressKey })
})
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

describe('the connections of a week', () => {
  it('are known of every event, whoever signed it', () => {
    expect(events.length).toBeGreaterThan(500)
    expect(new Set(events.map(({ isOfInstall }) => isOfInstall))).toEqual(new Set([true, false]))
    expect(events.filter(({ connection }) => connection?.country === undefined)).toEqual([])
  })

  it('are in data centres for farms, and across a border for a few people', () => {
    const countriesOf = (name: string) =>
      new Set(
        events
          .filter(({ phone }) => phone.kind.name === name)
          .map(({ connection }) => connection!.country),
      )
    expect(countriesOf('emulator-farm')).toEqual(new Set(['NL']))
    expect([...countriesOf('stock-android')].sort()).toEqual(['BE', 'CH', 'LU'])
    const abroad = events.filter(({ connection }) => connection!.country === 'LU')
    expect(abroad.length / events.length).toBeGreaterThan(0.01)
    expect(abroad.length / events.length).toBeLessThan(0.1)
  })

  it('change no byte of what phones send', () => {
    const without = makeEvents()
    expect(without.map(({ eventId }) => eventId)).toEqual(events.map(({ eventId }) => eventId))
    expect(without.filter(({ connection }) => connection !== undefined)).toEqual([])
  })
})
