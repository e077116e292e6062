/** The database of a test file of deliveries. */
import { afterAll, afterEach } from 'vitest'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { startMigratedPostgres } from '../servers/migrated-postgres.ts'
import type { TestPostgres } from '../servers/postgres-server.ts'
import { createDeliveryFixtures, type DeliveryFixtures } from './delivery-fixtures.ts'

export type DeliveryDatabase = {
  server: TestPostgres
  postgres: Postgres
  fixtures: DeliveryFixtures
  /** Called after each test, the last one first. */
  closers: (() => unknown)[]
}

/** Starts a migrated PostgreSQL, which stops with the test file. */
export async function useDeliveryDatabase(
  options: { connectionsMax?: number } = {},
): Promise<DeliveryDatabase> {
  const { server, postgres, close } = await startMigratedPostgres(options)
  const closers: DeliveryDatabase['closers'] = []
  afterAll(close)
  afterEach(async () => {
    for (const end of closers.splice(0).reverse()) await end()
    // Undelivered rows of one test must not reach the receivers of the next one.
    await postgres.query("delete from deliveries where state = 'pending'")
  })
  return { server, postgres, fixtures: createDeliveryFixtures(postgres), closers }
}
