/**
 * What the console does unasked: keeps the tenant directory equal to Postgres, undoes rotations
 * whose console is gone, and makes sure that MASTER_KEY opens what is stored. A round that fails
 * because a server is away is counted and tried again.
 */
import { ConfigError } from '#shared/io/config.ts'
import { createCredentialStore } from '#shared/io/credential-store.ts'
import type { Log } from '#shared/io/log.ts'
import type { Metrics } from '#shared/io/metrics.ts'
import type { Queryable } from '#shared/io/postgres.ts'
import { type Sealer, UnsealError } from '#shared/io/sealed-secrets.ts'
import type { TenantProjection } from '#shared/io/tenant-projection.ts'
import { type RotationDeps, undoAbandonedRotations } from './rotation.ts'

/** A lost projection is noticed within a second and a half, a wrong entry within three. */
const roundMs = 1_000

export type Upkeep = { stop: () => Promise<void> }

export type UpkeepDeps = {
  rotation: RotationDeps
  projection: TenantProjection
  log: Log
  metrics: Metrics
}

/** Starts the rounds. */
export function startUpkeep(deps: UpkeepDeps): Upkeep {
  const rounds = deps.metrics.counter(
    'di_console_upkeep_rounds_total',
    'Rounds of comparing the tenant directory with Postgres',
    ['outcome'],
  )
  const stopped = new AbortController()
  let failing = false
  const run = async () => {
    while (!stopped.signal.aborted) {
      try {
        await undoAbandonedRotations(deps.rotation)
        await deps.projection.repair()
        rounds.inc({ outcome: 'done' })
        failing = false
      } catch (error) {
        rounds.inc({ outcome: 'failed' })
        if (!failing) deps.log.warn({ err: error }, 'the tenant directory cannot be compared now')
        failing = true
      }
      await pause(roundMs, stopped.signal)
    }
  }
  const running = run()
  return {
    stop: async () => {
      stopped.abort()
      await running
      deps.projection.stop()
    },
  }
}

/**
 * Opens one stored secret per master key in use.
 * @throws ConfigError when MASTER_KEY is not the key that secrets are sealed under
 */
export async function requireMasterKey(db: Queryable, sealer: Sealer): Promise<void> {
  for (const { owner, sealed } of await createCredentialStore(db).listSealedSamples()) {
    try {
      sealer.unseal(sealed, owner)
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error
      throw new ConfigError([`MASTER_KEY does not open what is stored: ${error.message}`])
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    function done() {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done, { once: true })
    if (signal.aborted) done()
  })
}
