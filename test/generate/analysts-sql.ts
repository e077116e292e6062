/** `deploy/clickhouse/analysts.sql`: what a server that keeps users needs once for analysts. */
import {
  toAccessStatements,
  workloadStatements,
} from '#shared/io/analytics/analyst-access-store.ts'

const head = `-- Made from shared/io/analytics/analyst-access-store.ts by \`npm run generate\`: do not edit.
-- What a ClickHouse that keeps users needs once, for analysts of any number of tenants. The
-- console runs it by itself before it makes the first (di analysts create), as the user that it
-- signs in as, here \`default\`, and points the views at the reader.

`

const workloadHead = `
-- By hand, where all analysts together must leave processors to others. The console does not run
-- these: a server has one tree of workloads, which may be another one.
--
-- What ends a query is looked at between blocks of rows. A function that works on one huge value,
-- such as countMatches(repeat('a', 300000), 'a.*b|a'), goes on after max_execution_time, after its
-- client has left and after KILL QUERY. Until it is done it takes one thread, and one of the four
-- queries of its user; at a low priority where the server has CAP_SYS_NICE.

`

const toText = (statements: string[]): string =>
  statements.map((statement) => `${statement};\n`).join('\n')

export function renderAnalystsSql(): string {
  const access = toAccessStatements({ database: 'device_intelligence', owner: 'default' })
  return `${head}${toText(access)}${workloadHead}${toText(workloadStatements)}`
}
