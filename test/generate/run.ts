// `npm run generate`: writes every file that is made from others. It starts the ClickHouse engine
// for the pages about the views.
import { writeFileSync } from 'node:fs'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { cookbookFleet } from '../support/analytics/cookbook-span.ts'
import { insertHistory, planHistory } from '../support/analytics/fleet-history.ts'
import { startClickhouse } from '../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../support/servers/databases.ts'
import { generatedFiles, generatedPages, readGenerated, toGeneratedPath } from './files.ts'

function write(path: string, text: string): void {
  if (readGenerated(path) === text) return
  writeFileSync(toGeneratedPath(path), text)
  process.stdout.write(`wrote ${path}\n`)
}

for (const [path, render] of Object.entries(generatedFiles)) write(path, await render())

const server = await startClickhouse()
const clickhouse = createClickhouse(server.url, { name: 'generate' })
try {
  await migrateClickhouse(server.url)
  const history = planHistory(cookbookFleet.seed, cookbookFleet.devices)
  await insertHistory(clickhouse, history)
  for (const [path, render] of Object.entries(generatedPages)) {
    write(path, await render({ clickhouse, history }))
  }
} finally {
  await clickhouse.close()
  await server.stop()
}
