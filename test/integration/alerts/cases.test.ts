// Cases on a real PostgreSQL: what they count is what their alerts are, whatever raises, judges,
// moves and removes alerts at the same time; nobody gets a case twice.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { setDisposition } from '#shared/io/alerts/set-disposition.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import {
  type MigratedPostgres,
  startMigratedPostgres,
} from '../../support/servers/migrated-postgres.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

let servers: MigratedPostgres

beforeAll(async () => {
  servers = await startMigratedPostgres({ connectionsMax: 16 })
})
afterAll(() => servers?.close())

test('try', async () => {
  const { postgres } = servers
  await insertBareTenants(postgres, ['a'])
  const alerts = [1, 2, 3].map((n) => makeAlertCandidate({ tenantId: 'a', sessionId: `s${n}` }))
  await raiseAlerts(postgres, alerts)
  await raiseAlerts(postgres, [
    makeAlertCandidate({ tenantId: 'a', sessionId: 's9', action: 'BLOCK', riskScore: 90 }),
  ])
  console.log((await postgres.query('select * from cases')).rows)
  for (const one of alerts) {
    await setDisposition(postgres, {
      alertId: one.alertId,
      disposition: 'CONFIRMED',
      note: null,
      actor: 'ada',
    })
  }
  console.log((await postgres.query('select * from cases')).rows)
  await postgres.query('delete from alerts')
  expect((await postgres.query('select * from cases')).rows).toEqual([])
})
