/** Tenants for tests that need only the row: no secret, no webhook, an empty policy. */

/** A pool, a transaction, or a client of the driver. */
type Db = { query: (sql: string, values?: unknown[]) => Promise<unknown> }

/** Inserts tenants with version 1 of an empty policy document. */
export async function insertBareTenants(
  db: Db,
  tenantIds: readonly string[],
  environment: 'live' | 'sandbox' = 'live',
  telemetryStream = 1,
): Promise<void> {
  await db.query(
    `insert into policy_documents (policy_hash, document, text) values ('empty', '{}', '{}')
     on conflict do nothing`,
  )
  await db.query(
    `with added as (
       insert into tenants (tenant_id, environment, telemetry_stream)
       select unnest($1::text[]), $2, $3
       returning tenant_id
     )
     insert into tenant_policies (tenant_id, version, policy_hash, created_by)
     select tenant_id, 1, 'empty', 'test' from added`,
    [tenantIds, environment, telemetryStream],
  )
}
