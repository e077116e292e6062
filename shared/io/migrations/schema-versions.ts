/**
 * Compares the schemas of the stores with those that this release needs. A schema is older before
 * `npm run migrate`, and after a store was restored from the backup of an earlier release. A newer
 * one is no fault: the previous release works on it during an upgrade.
 */
import type { Metrics } from '#shared/io/process/metrics.ts'
import { findLastMigration, sqlFolders } from './migration-files.ts'
import { readViewVersion } from './view-files.ts'

export type SchemaVersions = {
  /**
   * @param newest the last applied file; null when none is known
   * @returns null, or what is wrong, as the end of a sentence
   */
  compare: (store: keyof typeof sqlFolders, newest: string | null) => Promise<string | null>
  /**
   * The same of the views in ClickHouse.
   * @param newest their version, 0 when none is known
   */
  compareViews: (newest: number) => Promise<string | null>
}

/** Creates the gauges. */
export function createSchemaVersions(metrics: Metrics): SchemaVersions {
  const present = metrics.gauge('di_schema_version', 'Number of the last migration, by store', {
    labels: ['store'],
  })
  const needed = metrics.gauge(
    'di_schema_version_needed',
    'Number of the last migration of the running code, by store',
    { labels: ['store'] },
  )
  return {
    compare: async (store, newest) => {
      const last = await findLastMigration(store)
      present.set({ store }, toNumber(newest))
      needed.set({ store }, toNumber(last))
      if (toNumber(newest) >= toNumber(last)) return null
      const has = newest === null ? 'has no schema' : `has the schema ${newest}`
      return `${has}; this release needs ${last}: run \`npm run migrate\``
    },
    compareViews: async (newest) => {
      const version = await readViewVersion(sqlFolders.clickhouse)
      present.set({ store: 'views' }, newest)
      needed.set({ store: 'views' }, version)
      if (newest >= version) return null
      return `has views of version ${newest}; this release needs ${version}: run \`npm run migrate\``
    },
  }
}

const toNumber = (name: string | null): number => Number.parseInt(name ?? '0', 10)
