// The analysts' address of the local stack. It runs in the stack's own process, so it survives a
// restart of the engine. The console shows its URL.

import { join } from 'node:path'
import { isAnalyst } from '#shared/io/analytics/analyst-store.ts'
import { listen } from '#shared/io/http/http-server.ts'
import { createInternalServer } from '#shared/io/http/internal-server.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type AnalystFront, openAnalystFront } from '../clickhouse/analyst-front.ts'
import { choosePort } from './ports/ports.ts'
import { readJson, writeJson } from './state-files.ts'

/** `internalUrl` serves `/readyz` and `/metrics`, whose counts are of all tenants. */
export type Analysts = AnalystFront & { internalUrl: string }

/** Opens the address and its internal listener, on the ports of the last start where free. */
export async function openAnalysts(options: {
  dataDir: string
  clickhouseUrl: string
  postgresUrl: string
  stopping: () => boolean
}): Promise<Analysts> {
  const { clickhouseUrl, stopping } = options
  const file = join(options.dataDir, 'ports.json')
  const ports = readJson<Record<string, number>>(file) ?? {}
  const { analysts, analysts_internal: internal, ...others } = ports
  const taken = new Set(Object.values(others))
  const port = await choosePort({ preferred: analysts, taken })
  const internalPort = await choosePort({ preferred: internal, taken: taken.add(port) })
  writeJson(file, { ...others, analysts: port, analysts_internal: internalPort })
  // The analyst receives each failure as a response, so none goes to the terminal.
  const log = createLog('analysts', 'silent')
  const metrics = createMetrics('analysts')
  const postgres = createPostgres(options.postgresUrl, {
    role: 'analysts',
    log,
    connectionsMax: 2,
  })
  const front = await openAnalystFront({
    port,
    clickhouseUrl,
    log,
    metrics,
    isAnalyst: (analyst) => isAnalyst(postgres, analyst),
  })
  const readyChecks = { postgres: postgres.checkReady }
  const own = createInternalServer({ log, metrics, readyChecks, stopping })
  return {
    url: front.url,
    internalUrl: await listen(own, { host: '127.0.0.1', port: internalPort }),
    close: async () => {
      await front.close()
      await own.close()
      await postgres.close()
    },
  }
}
