/**
 * `npm run record:release` records what this release writes, reads and needs. Run it at a release:
 * from then on the next one is compared with it.
 */
import { writeFileSync } from 'node:fs'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { startClickhouse } from '../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../support/servers/databases.ts'
import { startMigratedPostgres } from '../support/servers/migrated-postgres.ts'
import scores from '../vectors/scores.json' with { type: 'json' }
import {
  readClickhouseTables,
  readConstants,
  readFormats,
  readPermissions,
  readPostgresTables,
} from './present.ts'

const write = (name: string, content: unknown) =>
  writeFileSync(
    new URL(`./recorded/${name}.json`, import.meta.url),
    `${JSON.stringify(content, null, 1)}\n`,
  )

write('formats', await readFormats())
write('constants', readConstants())
write('permissions', readPermissions())
write('accepted', {})
// What tenants of this release have stored, and how it scores.
write('policies', presets)
write('scores', scores)
const postgres = await startMigratedPostgres()
write('postgres', await readPostgresTables(postgres.postgres))
await postgres.close()
const server = await startClickhouse()
await migrateClickhouse(server.url)
const clickhouse = createClickhouse(server.url, { name: 'test' })
write('clickhouse', await readClickhouseTables(clickhouse))
await clickhouse.close()
await server.stop()
