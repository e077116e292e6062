// The users of the processes for a ClickHouse server, with the grants of `processPermissions`.
// `npm run generate` writes `deploy/clickhouse/users.xml`.

import { toAllDatabase } from '../shared/core/base/shards.ts'
import { processPermissions } from '../shared/core/permissions/process-permissions.ts'
import {
  type TablePrivileges,
  toClickhouseGrants,
} from '../shared/core/permissions/table-privileges.ts'
import { clickhouseProcesses } from '../shared/io/analytics/analyst-access-store.ts'

const database = 'device_intelligence'
// One file for one node and for shards: a grant on what is not there does no harm.
const names = { databases: [database, toAllDatabase(database)], analytics: 'analytics' }

/** The users' file. For each password it has the variable that contains its SHA-256. */
export function renderClickhouseUsers(): string {
  const users = clickhouseProcesses.flatMap((name) => [
    `    <${name}>`,
    `      <password_sha256_hex from_env="SHA256_OF_${name.toUpperCase()}"/>`,
    '      <networks><ip>::/0</ip></networks>',
    '      <profile>default</profile>',
    '      <quota>default</quota>',
    '      <grants>',
    ...toClickhouseGrants(processPermissions[name].clickhouse as TablePrivileges, names).map(
      (grant) => `        <query>${grant}</query>`,
    ),
    '      </grants>',
    `    </${name}>`,
  ])
  return [
    '<!-- Made by `npm run generate` from shared/core/permissions/process-permissions.ts: do not edit.',
    '     What each process may do. -->',
    '<clickhouse>',
    '  <users>',
    ...users,
    '  </users>',
    '</clickhouse>',
    '',
  ].join('\n')
}
