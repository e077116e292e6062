/**
 * The baseline of a device history: the api's own app, in its own process, whose history is one
 * `SELECT 1` by the same client. It gets the URLs of the databases and answers with its own URL.
 */
import { toClient } from '#shared/core/devices/device-history.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createUserStore } from '#shared/io/devices/user-store.ts'
import { listen } from '#shared/io/http/http-server.ts'
import { createKeyedLists } from '#shared/io/lists/change-lists.ts'
import { createKeyedLabels } from '#shared/io/outcomes/change-labels.ts'
import { createCurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import { createEventListStore } from '#shared/io/telemetry/event-list-store.ts'
import { createEventStore } from '#shared/io/telemetry/event-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createApiApp } from '../../../services/api/app.ts'

export type BaselineUrls = { postgres: string; clickhouse: string }

const nothingKnown = {
  firstSeenAtMs: 0,
  lastSeenAtMs: 0,
  peakRaspScore: 0,
  peakRiskScore: 0,
  client: toClient([]),
  users: [],
  nextUser: null,
  sessions: [],
  install: null,
  connection: null,
  sessionsTotal: 0,
  next: null,
}

async function start(urls: BaselineUrls): Promise<string> {
  const log = createLog('baseline', 'warn')
  const postgres = createPostgres(urls.postgres, { role: 'baseline', log, connectionsMax: 20 })
  const clickhouse = createClickhouse(urls.clickhouse, {
    name: 'baseline',
    requestTimeoutMs: 5_000,
  })
  const app = await createApiApp(
    {
      tenants: createTenantStore(postgres),
      alerts: createAlertStore(postgres),
      answerOnce: () => Promise.reject(new Error('the baseline changes nothing')),
      history: {
        findLargeDevice: () => Promise.reject(new Error('no device is large here')),
        findSmallDevice: async ({ deviceId }) => {
          const result = await clickhouse.query({ query: 'SELECT 1', format: 'JSONCompactEachRow' })
          await result.json<[number]>()
          return { deviceId, ...nothingKnown }
        },
      },
      users: createUserStore(clickhouse),
      phones: {
        readPhone: async () => null,
        findPhonesOfDevices: async () => new Map(),
        listPhoneAlerts: async () => ({ alerts: [], total: 0 }),
      },
      events: {
        ...createEventStore(clickhouse),
        ...createEventListStore(clickhouse, {
          nowMs: Date.now,
          monotonicMs: () => performance.now(),
        }),
      },
      policies: createCurrentPolicyStore(postgres),
      lists: createKeyedLists(postgres, Date.now),
      labels: createKeyedLabels(postgres, Date.now),
      reconciliation: createReconciliationStore(clickhouse, 'analytics'),
      readVerdictKeys: async () => ({ keys: [] }),
      nowMs: Date.now,
      monotonicMs: () => performance.now(),
    },
    { log, metrics: createMetrics('baseline') },
  )
  return await listen(app, { host: '127.0.0.1', port: 0 })
}

process.on('message', async (urls: BaselineUrls) => process.send?.(await start(urls)))
process.on('disconnect', () => process.exit())
process.send?.('ready')
