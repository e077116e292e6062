/**
 * The baseline of the alert list, run as a child: the api's own server on a pool like the api's,
 * whose list is a bare `select ... limit 50` of the tenant, without an order, a filter or a total.
 */
import { type AlertRow, toAlert } from '#shared/core/alerts/alert.ts'
import { alertColumns } from '#shared/io/alerts/alert-columns.ts'
import { listingSession } from '#shared/io/alerts/list-alerts.ts'
import { listen } from '#shared/io/http/http-server.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createApiApp } from '../../../services/api/app.ts'

/** Starts it on a database. @returns its URL */
async function start(postgresUrl: string): Promise<string> {
  const log = createLog('baseline', 'warn')
  const metrics = createMetrics('baseline')
  const limits = { connectTimeoutMs: 1_000, statementTimeoutMs: 2_000, connectionsMax: 20 }
  const session = { settings: listingSession, ...limits }
  const postgres = createPostgres(postgresUrl, { role: 'baseline', log, metrics, ...session })
  const unused = () => Promise.reject(new Error('the baseline lists alerts alone'))
  const app = await createApiApp(
    {
      tenants: createTenantStore(postgres),
      alerts: {
        listAlerts: async ({ tenantId }) => {
          const { rows } = await postgres.query<AlertRow>({
            name: 'baseline',
            text: `select ${alertColumns} from alerts where tenant_id = $1 limit 50`,
            values: [tenantId],
          })
          return { alerts: rows.map(toAlert), total: rows.length, next: null }
        },
        listUncounted: unused,
        findAlertDetail: unused,
        setDisposition: unused,
        setListedDispositions: unused,
      },
      answerOnce: unused,
      history: { findSmallDevice: unused, findLargeDevice: unused },
      readVerdictKeys: unused,
      phones: { readPhone: unused, findPhonesOfDevices: unused, listPhoneAlerts: unused },
      users: { findUserTotals: unused, listUserDevices: unused },
      events: { findDecidedEvent: unused, listEvents: unused },
      policies: { findCurrentPolicy: unused },
      lists: { listEntries: unused, addEntry: unused, removeEntry: unused },
      labels: { listLabels: unused, listCodes: unused, addLabels: unused },
      reconciliation: { readReconciliation: unused },
      nowMs: Date.now,
      monotonicMs: () => performance.now(),
    },
    { log, metrics },
  )
  return await listen(app, { host: '127.0.0.1', port: 0 })
}

process.on('message', async (postgresUrl: string) => process.send?.(await start(postgresUrl)))
process.on('disconnect', () => process.exit())
process.send?.('ready')
