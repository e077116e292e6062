/**
 * The alarm for bad releases: every hour the console compares, for every active tenant, each
 * signal's share of each SDK version with that version's earlier days and with the platform's other
 * versions. What jumped is kept, counted, logged once and followed until it is over. Any number of
 * consoles take turns; a check that breaks off is made again.
 */

import {
  findSignalJump,
  jumpEndLimits,
  jumpLimits,
  type SignalDay,
  type SignalJump,
} from '#shared/core/analytics/signal-jump.ts'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import {
  createSignalJumpStore,
  type JumpKey,
  type SignalJumpStore,
  type StoredJump,
  toDays,
  type VersionShares,
} from '#shared/io/analytics/signal-jump-store.ts'
import { type Clickhouse, describeFailure } from '#shared/io/clickhouse/clickhouse.ts'
import { type Locks, tryNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'

export type SignalJumpDeps = {
  /** Connections for work that holds a lock. */
  locks: Locks
  clickhouse: Clickhouse
  log: Log
  metrics: Metrics
  wallMs: () => number
}

export type SignalJumps = {
  /**
   * One check of every tenant, if it is time.
   * @returns `elsewhere` when another console is at it, `failed` when some tenant was not checked
   */
  runRound: () => Promise<'not_due' | 'elsewhere' | 'checked' | 'failed'>
  /** Runs rounds until it is stopped. */
  start: () => { stop: () => Promise<void> }
}

const pollMs = 60_000
/** The last 24 hours and three weeks before them. */
const spans = 22
/** What has lasted this long is how the version is. */
const jumpMaxMs = 14 * dayMs

type State = SignalJumpDeps & {
  store: SignalJumpStore
  found: (count: number) => void
}

/** The alarm of one console. */
export function createSignalJumps(deps: SignalJumpDeps): SignalJumps {
  const { metrics, log } = deps
  const found = metrics.counter(
    'di_signal_jumps_total',
    'Signals whose share was found to have jumped within one SDK version',
  )
  const rounds = metrics.counter('di_signal_jump_checks_total', 'Checks of all shares', ['outcome'])
  let open = 0
  metrics.gauge('di_signal_jumps_open', 'Signals whose share has jumped and is not back', {
    collect() {
      this.set(open)
    },
  })
  const store = createSignalJumpStore(deps.clickhouse)
  const state: State = { ...deps, store, found: (count) => found.inc(count) }
  const runRound: SignalJumps['runRound'] = async () => {
    const outcome = await tryNamedLock(deps.locks, 'signal jumps', () => checkIfDue(state))
    open = await store.countOpen()
    if (outcome === 'checked' || outcome === 'failed') rounds.inc({ outcome })
    return outcome ?? 'elsewhere'
  }
  const run = async (stopping: AbortSignal) => {
    for (let failing = false; !stopping.aborted; await pause(pollMs, stopping)) {
      try {
        await runRound()
        failing = false
      } catch (error) {
        rounds.inc({ outcome: 'failed' })
        if (!failing) log.warn({ err: describeFailure(error) }, 'signal shares cannot be checked')
        failing = true
      }
    }
  }
  return {
    runRound,
    start: () => {
      const stopped = new AbortController()
      const running = run(stopped.signal)
      return {
        stop: async () => {
          stopped.abort()
          await running
        },
      }
    },
  }
}

async function checkIfDue(state: State): Promise<'not_due' | 'checked' | 'failed'> {
  const { store, log } = state
  const atMs = state.wallMs()
  if (atMs - (await store.readCheckedAt()) < hourMs) return 'not_due'
  let failed = false
  for (const tenantId of await store.listActiveTenants(atMs)) {
    try {
      await checkTenant(state, tenantId, atMs)
    } catch (error) {
      // One tenant's history that is too large to read keeps no other waiting.
      log.warn({ err: describeFailure(error), tenantId }, 'a tenant’s shares cannot be checked')
      failed = true
    }
  }
  await store.markChecked(atMs)
  return failed ? 'failed' : 'checked'
}

async function checkTenant(state: State, tenantId: string, atMs: number): Promise<void> {
  const { store } = state
  const open = await store.listJumps({ tenantId, openOnly: true })
  const versions = await store.readShares({ tenantId, atMs, spans })
  const { begun, ended, going } = decideJumps(versions, open, atMs)
  const touch = async (jump: StoredJump): Promise<StoredJump> => {
    const range = { fromMs: jump.startedAtMs, untilMs: atMs }
    const { devices, alerts } = await store.findTouched({ tenantId, ...jump, ...range })
    return { ...jump, devices, alerts }
  }
  const rows: StoredJump[] = [...ended]
  for (const jump of going) rows.push(await touch(jump))
  for (const jump of begun) {
    const touched = await touch(jump)
    rows.push(touched)
    const { platform, sdkVersion, signal, share, earlierShare, elsewhereShare } = touched
    state.log.warn(
      {
        tenantId,
        platform,
        sdkVersion,
        signal,
        share,
        earlierShare,
        elsewhereShare,
        devices: touched.devices,
        alerts: touched.alerts,
      },
      'a signal’s share jumped within one SDK version',
    )
  }
  await store.saveJumps(tenantId, rows)
  state.found(begun.length)
}

/** What began, what is over and what goes on, from the shares and what was open before. */
function decideJumps(
  versions: readonly VersionShares[],
  open: readonly StoredJump[],
  atMs: number,
): Record<'begun' | 'ended' | 'going', StoredJump[]> {
  const decided = { begun: [], ended: [], going: [] } as Record<string, StoredJump[]>
  const known = new Map(open.map((jump) => [toKey(jump), jump]))
  for (const version of versions) {
    for (const [signal, counts] of version.devices) {
      const key = { platform: version.platform, sdkVersion: version.sdkVersion, signal }
      if (counts[0] === 0 || known.has(toKey(key))) continue
      const jump = measure(versions, version, signal, 1, jumpLimits)
      if (jump === null) continue
      const times = { startedAtMs: atMs - dayMs, checkedAtMs: atMs, endedAtMs: null }
      decided.begun!.push({ ...key, ...jump, ...times, devices: 0, alerts: 0 })
    }
  }
  for (const jump of open) {
    const { platform, sdkVersion, signal, startedAtMs } = jump
    const version = versions.find(
      (one) => one.platform === platform && one.sdkVersion === sdkVersion,
    )
    // Only what was before it began is to be compared with.
    const from = Math.max(1, Math.ceil((atMs - startedAtMs) / dayMs))
    const still =
      version === undefined || atMs - startedAtMs > jumpMaxMs
        ? null
        : measure(versions, version, signal, from, jumpEndLimits)
    if (still !== null) decided.going!.push({ ...jump, ...still, checkedAtMs: atMs })
    else decided.ended!.push({ ...jump, checkedAtMs: atMs, endedAtMs: atMs })
  }
  return decided as Record<'begun' | 'ended' | 'going', StoredJump[]>
}

const toKey = ({ platform, sdkVersion, signal }: JumpKey): string =>
  JSON.stringify([platform, sdkVersion, signal])

function measure(
  versions: readonly VersionShares[],
  version: VersionShares,
  signal: string,
  from: number,
  limits: typeof jumpLimits,
): SignalJump | null {
  const [current] = toDays(version, signal, 0)
  const others = versions.filter((one) => one !== version && one.platform === version.platform)
  const elsewhere = others.reduce<SignalDay>(
    (sum, one) => ({
      devices: sum.devices + (one.devices.get(signal)?.[0] ?? 0),
      fleet: sum.fleet + one.fleets[0]!,
    }),
    { devices: 0, fleet: 0 },
  )
  return findSignalJump(
    { current: current!, earlier: toDays(version, signal, from), elsewhere },
    limits,
  )
}
