// The analysts' proxy of the local stack. It runs in the stack's own process, so it survives a
// restart of the engine. The console shows its URL.

import { join } from 'node:path'
import { isAnalyst } from '#shared/io/analytics/analyst-store.ts'
import { listen } from '#shared/io/http/http-server.ts'
import { createInternalServer } from '#shared/io/http/internal-server.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type AnalystProxy, openAnalystProxy } from '../clickhouse/analyst-proxy.ts'
import { choosePort } from './ports.ts'
import { readJson, writeJson } from './state-files.ts'

/** `internalUrl` serves `/readyz` and `/metrics`, whose counts are of all tenants. */
export type Analysts = Pick<AnalystProxy, 'url' | 'close'> & {
  internalUrl: string
  /** In `stack.json`. */
  addresses: { analysts: string; analysts_native: string }
}

/** Opens the proxy and its internal listener, on the ports of the last start where free. */
export async function openAnalysts(options: {
  dataDir: string
  clickhouseUrl: string
  postgresUrl: string
  stopping: () => boolean
}): Promise<Analysts> {
  const { clickhouseUrl, stopping } = options
  const file = join(options.dataDir, 'ports.json')
  const ports = readJson<Record<string, number>>(file) ?? {}
  const { analysts, analysts_internal: internal, analysts_native: native, ...others } = ports
  const taken = new Set(Object.values(others))
  const port = await choosePort({ preferred: analysts, taken })
  const internalPort = await choosePort({ preferred: internal, taken: taken.add(port) })
  const nativePort = await choosePort({ preferred: native, taken: taken.add(internalPort) })
  writeJson(file, {
    ...others,
    analysts: port,
    analysts_internal: internalPort,
    analysts_native: nativePort,
  })
  // The analyst receives each failure as a response, so none goes to the terminal.
  const log = createLog('analysts', 'silent')
  const metrics = createMetrics('analysts')
  const postgres = createPostgres(options.postgresUrl, {
    role: 'analysts',
    log,
    connectionsMax: 2,
  })
  const proxy = await openAnalystProxy({
    port,
    nativePort,
    clickhouseUrl,
    metrics,
    isAnalyst: (analyst) => isAnalyst(postgres, analyst),
  })
  const readyChecks = { postgres: postgres.checkReady }
  const own = createInternalServer({ log, metrics, readyChecks, stopping })
  return {
    url: proxy.url,
    addresses: { analysts: proxy.url, analysts_native: proxy.native },
    internalUrl: await listen(own, { host: '127.0.0.1', port: internalPort }),
    close: async () => {
      await proxy.close()
      await own.close()
      await postgres.close()
    },
  }
}
