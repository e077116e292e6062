/** In place of SQL, for operators who may not run it on the embedded engine. */
import { Empty } from '../../components/states.tsx'

export function NeedsServer() {
  return (
    <Empty title="SQL of one tenant needs a ClickHouse server">
      <p>
        This installation runs on the embedded ClickHouse engine, which does not separate tenants.
        Only operators who may see all tenants run SQL and create analysts here.
      </p>
      <p>
        An administrator can set CLICKHOUSE_URL to a ClickHouse server that keeps users. There each
        tenant's analysts are its own users (deploy/clickhouse/analysts.sql).
      </p>
    </Empty>
  )
}
