/**
 * Every file of this project that is made from others. `npm run generate` writes them, and tests
 * compare them: a stale one fails `npm test`.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { toPolicyJsonSchema } from '#shared/core/policies/policy-check.ts'
import { readCookbook } from '#shared/io/analytics/cookbook.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { sqlFolders } from '#shared/io/migrations/migration-files.ts'
import { readViews, renderViewVersion } from '#shared/io/migrations/view-files.ts'
import { renderClickhouseUsers } from '../../deploy/clickhouse-users.ts'
import { renderProcesses } from '../../deploy/helm-processes.ts'
import { renderNatsUsersFile } from '../../deploy/nats-users.ts'
import { renderCookbookPage } from '../support/analytics/cookbook.ts'
import type { FleetHistory } from '../support/analytics/fleet-history.ts'
import { toDashboard } from '../support/analytics/grafana-dashboard.ts'
import { describePublicApi } from '../support/http/describe-public-api.ts'
import { renderAnalystsSql } from './analysts-sql.ts'
import { renderAnalyticsPage } from './analytics-page.ts'
import { renderAttestationReasons } from './attestation-reasons.ts'
import { renderClientTypes } from './client-types.ts'
import { recordPath, renderLinearExpressions } from './linear-expressions.ts'
import { renderRoleTable } from './role-table.ts'
import { renderVocabularyPage } from './vocabulary-page.ts'

const root = new URL('../..', import.meta.url)

/** @param path below the project's folder */
export const toGeneratedPath = (path: string): string => fileURLToPath(new URL(path, root))

/** @returns null when it is missing */
export function readGenerated(path: string): string | null {
  try {
    return readFileSync(toGeneratedPath(path), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

const toJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

const versionPath = 'clickhouse/views/VERSION'

/** The text of each file that is made without a server, by its path below the project's folder. */
export const generatedFiles: Readonly<Record<string, () => string | Promise<string>>> = {
  'clickhouse/views/VERSION': async () => {
    const { views } = await readViews(sqlFolders.clickhouse)
    return renderViewVersion(views, readGenerated(versionPath))
  },
  'deploy/clickhouse/analysts.sql': renderAnalystsSql,
  'deploy/clickhouse/users.xml': renderClickhouseUsers,
  'deploy/grafana/provisioning/dashboards/fraud.json': () => toDashboard(readCookbook()),
  'deploy/helm/files/processes.yaml': renderProcesses,
  'deploy/nats-users.conf': renderNatsUsersFile,
  'services/api/openapi/openapi.json': async () => toJson(await describePublicApi()),
  [recordPath]: () => renderLinearExpressions(readGenerated(recordPath)),
  'services/console/ROLES.md': renderRoleTable,
  'services/console/web/api/schema.ts': renderClientTypes,
  'shared/core/signals/VOCABULARY.md': renderVocabularyPage,
  'shared/core/attestation/REASONS.md': renderAttestationReasons,
  'shared/core/policies/policy.schema.json': () => toJson(toPolicyJsonSchema()),
}

/** A migrated ClickHouse that has the simulated history. */
export type GeneratingServer = { clickhouse: Clickhouse; history: FleetHistory }

/** The text of each page that is read from a database. */
export const generatedPages: Readonly<
  Record<string, (server: GeneratingServer) => Promise<string>>
> = {
  'clickhouse/ANALYTICS.md': ({ clickhouse }) => renderAnalyticsPage(clickhouse),
  'clickhouse/COOKBOOK.md': ({ clickhouse, history }) => renderCookbookPage(clickhouse, history),
}

/** What a test says of a file that is not as it is made. */
export const toStaleText = (path: string): string => `${path} is stale: run \`npm run generate\``
