/** The first part of a move to other NATS servers: fills them before any edge is there. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { type CliContext, CliError } from '../../context.ts'
import { patiently } from './patiently.ts'

export type MovePrepared = {
  /** Streams and consumers that were made now. */
  created: string[]
  tenants: number
}

const connectMaxMs = 10_000
/** Three servers that have just started form a cluster in seconds. */
const formMaxMs = 60_000
/** How often the directory is compared until nothing differs. */
const repairEveryMs = 250

/**
 * Makes what is missing, and returns once the directory of tenants equals Postgres. Repeating it is
 * harmless.
 * @throws CliError while a console runs: edges would be on two directories, and a secret that a
 *   console replaces in one of them would work at the edges of the other
 */
export async function prepareMove({ env }: CliContext): Promise<MovePrepared> {
  // Loaded here, because other commands need no server.
  const { natsVariables, readConfig, toNatsSettings, variables } = await import(
    '#shared/io/process/config.ts'
  )
  const { createPostgres } = await import('#shared/io/postgres/postgres.ts')
  const { hasRunningConsole } = await import('#shared/io/postgres/running-processes.ts')
  const { createSealer, toMasterKeys } = await import('#shared/io/keys/console-keys.ts')
  const { readKeyForm } = await import('#shared/io/keys/key-form.ts')
  const { createLog } = await import('#shared/io/process/log.ts')
  const { within } = await import('#shared/io/process/pause.ts')
  const { connectNats } = await import('#shared/io/nats/connection.ts')
  const { requireMasterKey } = await import('../../../keys/require-master-key.ts')
  const { POSTGRES_URL, MASTER_KEY, MASTER_KEY_PREVIOUS } = variables
  const names = { ...natsVariables, POSTGRES_URL, MASTER_KEY, MASTER_KEY_PREVIOUS }
  const config = readConfig(names, env)
  const log = createLog('di', 'silent')
  const postgres = createPostgres(config.POSTGRES_URL, { role: 'di', log })
  try {
    if (await hasRunningConsole(postgres)) {
      throw new CliError('A console is running: stop it first, and start it when the move is done.')
    }
    const form = await readKeyForm(postgres)
    const sealer = createSealer(toMasterKeys(config), () => form)
    await requireMasterKey(postgres, sealer)
    const connecting = connectNats(toNatsSettings(config), 'console', log)
    if (!(await within(connecting, connectMaxMs))) {
      throw new CliError('NATS cannot be reached. Set NATS_URL as the console will have it.')
    }
    const nats = await connecting
    try {
      const created = await makeStreams(nats)
      return { created, tenants: await fillDirectory(nats, postgres, sealer) }
    } finally {
      await nats.close()
    }
  } finally {
    await postgres.close()
  }
}

async function makeStreams(nats: Nats): Promise<string[]> {
  const { isClustered, onceFormed } = await import('#shared/io/nats/streams/ensure-streams.ts')
  const { restoreStreams } = await import('#shared/io/nats/streams/restore-streams.ts')
  const { createLog } = await import('#shared/io/process/log.ts')
  if (isClustered(nats) && nats.replicas === null) {
    throw new CliError('These servers are a cluster: set NATS_REPLICAS, as for all processes.')
  }
  const log = createLog('di', 'silent')
  return await onceFormed(() => restoreStreams(nats), { log, limitMs: formMaxMs })
}

/** @returns how many tenants it has */
async function fillDirectory(nats: Nats, postgres: Postgres, sealer: Sealer): Promise<number> {
  const { createTenantProjection } = await import(
    '#shared/io/tenants/directory/tenant-projection.ts'
  )
  const { openDirectory, readProven } = await import(
    '#shared/io/tenants/directory/directory-entries.ts'
  )
  const { projectVerdictKey } = await import('#shared/io/verdicts/project-verdict-key.ts')
  const { syncedEntrySchema, syncedKey } = await import('#shared/core/tenants/directory-entries.ts')
  const { createLog } = await import('#shared/io/process/log.ts')
  const { createMetrics } = await import('#shared/io/process/metrics.ts')
  const projection = createTenantProjection({
    findNats: () => nats,
    sealer,
    postgres,
    log: createLog('di', 'silent'),
    metrics: createMetrics('di'),
    nowMs: () => performance.now(),
  })
  try {
    const compare = async () => {
      const written = await projection.repair()
      const directory = await openDirectory(nats, sealer)
      await projectVerdictKey(directory, postgres)
      const entry = await directory.bucket.get(syncedKey)
      const synced = entry === null ? null : readProven(directory, entry)?.value
      const parsed = syncedEntrySchema.safeParse(synced)
      return written === 0 && parsed.success ? parsed.data.tenants : null
    }
    for (;;) {
      const tenants = await patiently('Filling the directory', compare)
      if (tenants !== null) return tenants
      await sleep(repairEveryMs)
    }
  } finally {
    projection.stop()
  }
}
