/** A PostgreSQL with a migrated database, for test files that need nothing else. */
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { startPostgres, type TestPostgres } from './postgres-server.ts'

export type MigratedPostgres = {
  server: TestPostgres
  databaseUrl: string
  /** Connected as the role `test`. */
  postgres: Postgres
  close: () => Promise<void>
}

/** Starts the server, creates the database and applies every migration. */
export async function startMigratedPostgres(
  options: { connectionsMax?: number } = {},
): Promise<MigratedPostgres> {
  const server = await startPostgres()
  try {
    const databaseUrl = await server.createMigratedDatabase()
    const log = createLog('test', 'silent')
    const postgres = createPostgres(databaseUrl, { role: 'test', log, ...options })
    return {
      server,
      databaseUrl,
      postgres,
      close: async () => {
        await postgres.close()
        await server.stop()
      },
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}
