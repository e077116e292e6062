/**
 * Finds bad SDK releases: every hour the console compares, for every active tenant, the prevalence
 * of each signal in each SDK version with that version's earlier days and with the platform's other
 * versions. Spikes are stored, counted, logged once and updated until they end. A lease lets one
 * console check at a time; an interrupted check is repeated.
 */

import {
  findPrevalenceSpike,
  type PrevalenceSample,
  type PrevalenceSpike,
  spikeEndLimits,
  spikeStartLimits,
} from '#shared/core/analytics/prevalence-spike.ts'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import {
  createPrevalenceSpikeStore,
  type PrevalenceSpikeStore,
  type SpikeKey,
  type StoredSpike,
  toDays,
  type VersionPrevalence,
} from '#shared/io/analytics/prevalence-spike-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type Leases, withLease } from '#shared/io/leases/leases.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '../../../shared/io/process/poll.ts'

type PrevalenceSpikeDeps = {
  leases: Leases
  clickhouse: Clickhouse
  log: Log
  metrics: Metrics
  wallMs: () => number
}

export type PrevalenceSpikes = {
  /**
   * One check of every tenant, if it is time.
   * @returns `elsewhere` when another console has the lease, `failed` when a tenant was not
   * checked
   */
  runRound: () => Promise<'not_due' | 'elsewhere' | 'checked' | 'failed'>
  /** Runs rounds until it is stopped. */
  start: () => Poller
}

/** How often the job looks whether a check is due: one that was requested begins within this time. */
const pollMs = 10_000
/** The last 24 hours and three weeks before them. */
const spans = 22
/** A spike that lasts this long is the version’s normal prevalence. */
const spikeMaxMs = 14 * dayMs

type State = PrevalenceSpikeDeps & {
  store: PrevalenceSpikeStore
  found: (count: number) => void
}

/** Creates the job of one console. */
export function createPrevalenceSpikes(deps: PrevalenceSpikeDeps): PrevalenceSpikes {
  const { metrics, log } = deps
  const found = metrics.counter(
    'di_prevalence_spikes_total',
    'Prevalence spikes of signals found within one SDK version',
  )
  const rounds = metrics.counter(
    'di_prevalence_spike_checks_total',
    'Prevalence checks of all tenants',
    ['outcome'],
  )
  let open = 0
  metrics.gauge('di_prevalence_spikes_open', 'Prevalence spikes that have not ended', {
    collect() {
      this.set(open)
    },
  })
  const store = createPrevalenceSpikeStore(deps.clickhouse)
  const isDue = async () => deps.wallMs() - (await store.readCheckedAt()) >= hourMs
  const checkIfDue: PrevalenceSpikes['runRound'] = async () => {
    if (!(await isDue())) return 'not_due'
    const outcome = await withLease(deps.leases, 'prevalence spikes', async (lease) => {
      // Again under the lease: another console may have just checked.
      if (!(await isDue())) return 'not_due'
      const fenced = createPrevalenceSpikeStore(lease.fence(deps.clickhouse))
      return checkAll({ ...deps, store: fenced, found: (count) => found.inc(count) })
    })
    return outcome ?? 'elsewhere'
  }
  const runRound: PrevalenceSpikes['runRound'] = async () => {
    const outcome = await checkIfDue()
    open = await store.countOpen()
    if (outcome === 'checked' || outcome === 'failed') rounds.inc({ outcome })
    return outcome
  }
  return {
    runRound,
    start: () =>
      startPolling(runRound, {
        log,
        everyMs: pollMs,
        failure: 'prevalence cannot be checked',
        onFailure: () => rounds.inc({ outcome: 'failed' }),
      }),
  }
}

async function checkAll(state: State): Promise<'checked' | 'failed'> {
  const { store, log } = state
  const atMs = state.wallMs()
  let failed = false
  for (const tenantId of await store.listActiveTenants(atMs)) {
    try {
      await checkTenant(state, tenantId, atMs)
    } catch (error) {
      // A tenant whose history is too large to read must not block the others.
      log.warn({ err: error, tenantId }, 'a tenant’s prevalence cannot be checked')
      failed = true
    }
  }
  await store.markChecked(atMs)
  return failed ? 'failed' : 'checked'
}

async function checkTenant(state: State, tenantId: string, atMs: number): Promise<void> {
  const { store } = state
  const open = await store.listSpikes({ tenantId, openOnly: true })
  const versions = await store.readPrevalence({ tenantId, atMs, spans })
  const { begun, ended, going } = compareWithOpen(versions, open, atMs)
  const measureAffected = async (spike: StoredSpike): Promise<StoredSpike> => {
    const range = { fromMs: spike.startedAtMs, untilMs: atMs }
    const { devices, alerts } = await store.findAffected({ tenantId, ...spike, ...range })
    return { ...spike, devices, alerts }
  }
  const rows: StoredSpike[] = [...ended]
  for (const spike of going) rows.push(await measureAffected(spike))
  for (const spike of begun) {
    const affected = await measureAffected(spike)
    rows.push(affected)
    const { platform, sdkVersion, signal, prevalence, earlierPrevalence, elsewherePrevalence } =
      affected
    state.log.warn(
      {
        tenantId,
        platform,
        sdkVersion,
        signal,
        prevalence,
        earlierPrevalence,
        elsewherePrevalence,
        devices: affected.devices,
        alerts: affected.alerts,
      },
      'a signal’s prevalence spiked within one SDK version',
    )
  }
  await store.saveSpikes(tenantId, rows)
  state.found(begun.length)
}

/** Compares the measured prevalence with the open spikes: which begin, end and go on. */
function compareWithOpen(
  versions: readonly VersionPrevalence[],
  open: readonly StoredSpike[],
  atMs: number,
): Record<'begun' | 'ended' | 'going', StoredSpike[]> {
  const decided = { begun: [], ended: [], going: [] } as Record<string, StoredSpike[]>
  const known = new Map(open.map((spike) => [toKey(spike), spike]))
  for (const version of versions) {
    for (const [signal, counts] of version.devices) {
      const key = { platform: version.platform, sdkVersion: version.sdkVersion, signal }
      if (counts[0] === 0 || known.has(toKey(key))) continue
      const spike = measure(versions, version, signal, 1, spikeStartLimits)
      if (spike === null) continue
      const times = { startedAtMs: atMs - dayMs, checkedAtMs: atMs, endedAtMs: null }
      decided.begun!.push({ ...key, ...spike, ...times, devices: 0, alerts: 0 })
    }
  }
  for (const spike of open) {
    const { platform, sdkVersion, signal, startedAtMs } = spike
    const version = versions.find(
      (one) => one.platform === platform && one.sdkVersion === sdkVersion,
    )
    // The baseline is the days before the spike began.
    const from = Math.max(1, Math.ceil((atMs - startedAtMs) / dayMs))
    const still =
      version === undefined || atMs - startedAtMs > spikeMaxMs
        ? null
        : measure(versions, version, signal, from, spikeEndLimits)
    if (still !== null) decided.going!.push({ ...spike, ...still, checkedAtMs: atMs })
    else decided.ended!.push({ ...spike, checkedAtMs: atMs, endedAtMs: atMs })
  }
  return decided as Record<'begun' | 'ended' | 'going', StoredSpike[]>
}

const toKey = ({ platform, sdkVersion, signal }: SpikeKey): string =>
  JSON.stringify([platform, sdkVersion, signal])

function measure(
  versions: readonly VersionPrevalence[],
  version: VersionPrevalence,
  signal: string,
  from: number,
  limits: typeof spikeStartLimits,
): PrevalenceSpike | null {
  const [current] = toDays(version, signal, 0)
  const others = versions.filter((one) => one !== version && one.platform === version.platform)
  const elsewhere = others.reduce<PrevalenceSample>(
    (sum, one) => ({
      devices: sum.devices + (one.devices.get(signal)?.[0] ?? 0),
      fleet: sum.fleet + one.fleets[0]!,
    }),
    { devices: 0, fleet: 0 },
  )
  return findPrevalenceSpike(
    { current: current!, earlier: toDays(version, signal, from), elsewhere },
    limits,
  )
}
