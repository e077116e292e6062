/** Stores that are put back to an earlier state, and a stack that is restored from a backup. */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { removalsBucket } from '#shared/core/telemetry/nats-names.ts'
import { readAlerts } from '../../../deploy/fleet/check/read-back.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { admin, createTenant, type Tenant } from '../../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { readProgress } from '../../support/telemetry/read-stream.ts'
import { type PhoneLoad, startPhoneLoad } from '../support/stack-under-load/phone-load.ts'
import { callApi, connectQuietly, readStored } from '../support/stack-under-load/read-back.ts'
import { signalChild } from '../support/stack-under-load/stack-children.ts'
import {
  awaitRevived,
  awaitUndecided,
  findUndone,
  makeChanges,
  prepareChanges,
  type Store,
  sendUndecided,
} from './changes.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const run = promisify(execFile)
const settleLimitMs = 120_000

export type RestoreOptions = {
  /** How long the stack gets telemetry before, and after, the state that is put back. */
  seconds: number
  ratePerSecond: number
  seed: number
  onStep?: (line: string) => void
}

export type RestoreResult = {
  accepted: number
  /** Events in ClickHouse and alerts in Postgres right after the state was put back. */
  found: { events: number; alerts: number }
  /** Alerts before. */
  alerts: number
  /** What is missing at the end; empty lists hold. */
  missing: { events: string[]; alerts: string[]; differences: string[] }
  /** Changes since the state that a restored store has undone. */
  undone: string[]
}

/** A command of the command line on a stack. */
async function runDi<T>(dataDir: string, ...args: string[]): Promise<T> {
  const { stdout } = await run(
    process.execPath,
    [join(root, 'services/console/cli.ts'), ...args, '--json'],
    { cwd: root, env: { ...process.env, DATA_DIR: dataDir }, maxBuffer: 64 * 1024 ** 2 },
  )
  return JSON.parse(stdout) as T
}

type World = RestoreOptions & { tenants: Tenant[]; load: PhoneLoad; running: TestStack }

async function startWorld(options: RestoreOptions): Promise<World> {
  const running = await startStack()
  const tenants: Tenant[] = []
  for (const name of ['one', 'two']) tenants.push(await createTenant(running.stack, name))
  return { ...options, running, tenants, load: startLoad(options, running, tenants) }
}

function startLoad(
  { ratePerSecond, seed }: RestoreOptions,
  running: TestStack,
  tenants: Tenant[],
): PhoneLoad {
  return startPhoneLoad({
    ingestUrl: running.stack.ingest,
    tenants,
    ratePerSecond,
    eventsPerDevice: 12,
    random: createRandom(seed, `load ${performance.now()}`),
  })
}

async function readAlertIds(world: Pick<World, 'running' | 'tenants'>): Promise<Set<string>> {
  const ids = new Set<string>()
  for (const tenant of world.tenants) {
    const { alerts } = await callApi(world.running.stack, tenant, readAlerts)
    for (const { alert_id: id } of alerts) ids.add(id)
  }
  return ids
}

type ExpectedIds = { events: ReadonlySet<string>; alerts: ReadonlySet<string> }

const without = (wanted: ReadonlySet<string>, found: ReadonlySet<string>): string[] =>
  [...wanted].filter((id) => !found.has(id))

/** Waits until nothing is missing and all stages agree, or until the limit. */
async function settle(
  world: Pick<World, 'running' | 'tenants'>,
  wanted: ExpectedIds,
): Promise<RestoreResult['missing']> {
  let missing: RestoreResult['missing'] = { events: [], alerts: [], differences: [] }
  const look = async () => {
    missing = {
      events: without(wanted.events, await readStored(world.running.stack, world.tenants)),
      alerts: without(wanted.alerts, await readAlertIds(world)),
      differences: await readDifferences(world),
    }
    return Object.values(missing).every((list) => list.length === 0)
  }
  await until('nothing is missing', look, settleLimitMs).catch(() => undefined)
  return missing
}

async function awaitDecided({ running }: Pick<World, 'running'>): Promise<void> {
  const nats = await connectQuietly(running.stack)
  const isDecided = async () => {
    const { lastSequence, acknowledged } = await readProgress(nats)
    return acknowledged >= lastSequence
  }
  await until('everything is decided', isDecided, settleLimitMs).finally(nats.close)
}

/**
 * Waits until the erasure, and so the rotation before it, is in the second list of what must stay
 * gone: a console copies it every half minute, and what is put back earlier is not known.
 */
async function awaitListed({ running }: Pick<World, 'running'>): Promise<void> {
  const nats = await connectQuietly(running.stack)
  const stream = `KV_${removalsBucket}`
  const isListed = async () => {
    const filter = { subjects_filter: `$KV.${removalsBucket}.erasure.>` }
    const { state } = await nats.manager.streams.info(stream, filter)
    return Object.keys(state.subjects ?? {}).length > 0
  }
  await until('the erasure is listed', isListed, settleLimitMs).finally(nats.close)
}

type Reconciliation = { data: { differences: { stage: string; kind: string; count: number }[] }[] }

async function readDifferences(world: Pick<World, 'running' | 'tenants'>): Promise<string[]> {
  const found: string[] = []
  for (const { tenant_id: tenant } of world.tenants) {
    const path = `/tenants/${tenant}/reconciliation`
    const { data } = await admin<Reconciliation>(world.running.stack, 'GET', path)
    for (const { stage, kind, count } of data.flatMap(({ differences }) => differences)) {
      found.push(`${tenant}: ${count} ${kind} at ${stage}`)
    }
  }
  return found
}

/**
 * Makes a backup under load, loses everything, and restores into an empty folder: what was accepted
 * before the backup began must be there.
 */
export async function backupAndRestore(options: RestoreOptions): Promise<RestoreResult> {
  const report = options.onStep ?? (() => undefined)
  const world = await startWorld(options)
  const folders = mkdtempSync(join(tmpdir(), 'di-restore-'))
  const backup = join(folders, 'backup')
  const dataDir = join(folders, 'data')
  const running = { stacks: [world.running] }
  try {
    await pause(1_000 * options.seconds)
    const wanted = { events: new Set(world.load.accepted), alerts: await readAlertIds(world) }
    const { messages } = await runDi<{ messages: Record<string, number> }>(
      world.running.dataDir,
      'backup',
      backup,
    )
    report(`backup under load, with ${messages.TELEMETRY} messages on their way`)
    await world.load.stop()
    await world.running.discard()
    await runDi(dataDir, 'restore', backup)
    const restored = await startStack({ dataDir })
    running.stacks.push(restored)
    const after = { running: restored, tenants: world.tenants }
    const found = {
      events: (await readStored(restored.stack, world.tenants)).size,
      alerts: (await readAlertIds(after)).size,
    }
    report(`restored: ${found.events} events and ${found.alerts} alerts at once`)
    // It works: the same secrets sign new events.
    const load = startLoad(options, restored, world.tenants)
    await pause(1_000 * Math.min(5, options.seconds))
    await load.stop()
    const events = new Set([...wanted.events, ...load.accepted])
    return {
      accepted: events.size,
      found,
      alerts: wanted.alerts.size,
      missing: await settle(after, { ...wanted, events }),
      undone: [],
    }
  } finally {
    for (const stack of running.stacks) await stack.discard()
    await rm(folders, { recursive: true, force: true })
  }
}

/** The folder of each store in the folder of the stack. */
const folderOf: Record<Store, string> = {
  postgres: 'postgres',
  clickhouse: 'clickhouse',
  jetstream: 'nats',
}

/**
 * Puts one store back to an earlier state while the others are newer, and does what
 * `deploy/BACKUP.md` tells an operator: a replay of what was accepted since. For JetStream there is
 * nothing to replay.
 */
export async function putBack(store: Store, options: RestoreOptions): Promise<RestoreResult> {
  const report = options.onStep ?? (() => undefined)
  const world = await startWorld(options)
  const old = mkdtempSync(join(tmpdir(), 'di-put-back-'))
  const { dataDir, portBase } = world.running
  const restart = async (change: () => void) => {
    await world.running.stop()
    change()
    world.running = await startStack({ dataDir, portBase })
  }
  try {
    const tenant = await prepareChanges(world.running.stack)
    await pause(1_000 * options.seconds)
    await world.load.stop()
    // What is accepted and not decided yet is not in the state: a replay has to begin before it.
    await awaitDecided(world)
    if (store === 'jetstream') {
      // Scorers read it once more from the state, after its device is erased.
      signalChild(world.running, 'scorer', 'SIGSTOP')
      await sendUndecided(world.running.stack, tenant)
    }
    const since = new Date().toISOString()
    const [kept, present] = [join(old, store), join(dataDir, folderOf[store])]
    await restart(() => cpSync(present, kept, { recursive: true, preserveTimestamps: true }))
    const before = world.load.accepted
    const load = startLoad(options, world.running, world.tenants)
    await pause(1_000 * options.seconds)
    await load.stop()
    const events = new Set([...before, ...load.accepted])
    if (store === 'jetstream') await awaitUndecided(world.running.stack, tenant)
    const changes = await makeChanges(world.running.stack, tenant)
    await awaitDecided(world)
    await awaitListed(world)
    const alerts = await readAlertIds(world)
    await restart(() => {
      rmSync(present, { recursive: true })
      cpSync(kept, present, { recursive: true, preserveTimestamps: true })
    })
    const found = {
      events: (await readStored(world.running.stack, world.tenants)).size,
      alerts: (await readAlertIds(world)).size,
    }
    report(
      `put back: ${found.events} of ${events.size} events, ${found.alerts} of ${alerts.size} alerts`,
    )
    if (store === 'jetstream') {
      // It is in use again: sequences that it gave before the events of this load are given again.
      const again = startLoad(options, world.running, world.tenants)
      await pause(1_000 * options.seconds)
      await again.stop()
      for (const id of again.accepted) events.add(id)
      await awaitDecided(world)
      await awaitRevived(world.running.stack)
    } else {
      const replay = ['replay', '--since', since, '--wait']
      const { messages } = await runDi<{ messages: number }>(dataDir, ...replay)
      report(`${messages} messages replayed`)
    }
    const undone = await findUndone(world.running.stack, changes, store)
    const missing = await settle(world, { events, alerts })
    return { accepted: events.size, found, alerts: alerts.size, missing, undone }
  } finally {
    await world.load.stop()
    await world.running.discard()
    await rm(old, { recursive: true, force: true })
  }
}

/** @returns the broken guarantees */
export function judgeRestore(name: string, result: RestoreResult): string[] {
  const { missing } = result
  const wrong = Object.entries({ ...missing, 'changes undone': result.undone })
    .filter(([, list]) => list.length > 0)
    .map(([what, list]) => `${name}: ${list.length} ${what} (${list.slice(0, 3).join('; ')})`)
  return result.accepted === 0 || result.alerts === 0
    ? [...wrong, `${name}: nothing happened`]
    : wrong
}
