/**
 * The outages: how each begins and ends, and what the service guarantees meanwhile; null means no
 * guarantee.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import type { ServerName, ServiceName } from '../../../deploy/local/stack/settings.ts'
import type { OutageRig } from './rig.ts'

export type Expected = {
  /** Whether telemetry is accepted; `never` where nats-server cannot acknowledge any. */
  intake: boolean | 'never'
  /** Whether these calls of the api succeed. */
  alerts: boolean | null
  device: boolean | null
  /** The correct result of `/readyz` of each process. */
  ready: Record<ServiceName, boolean | null>
}

export type Outage = {
  name: string
  /** At `--scale 1`. */
  lastsMs: number
  begin: (rig: OutageRig) => Promise<unknown> | unknown
  end: (rig: OutageRig) => Promise<unknown> | unknown
  expected: Expected
}

const all = { ingest: true, scorer: true, api: true, delivery: true, console: true }
const continues = { intake: true, alerts: true, device: true }
const hang = (name: ServerName): Pick<Outage, 'begin' | 'end'> => ({
  begin: ({ servers }) => servers[name].signal('SIGSTOP'),
  end: ({ servers }) => servers[name].signal('SIGCONT'),
})
const takeDown = (name: ServerName): Pick<Outage, 'begin' | 'end'> => ({
  begin: ({ servers }) => servers[name].down(),
  end: ({ servers }) => servers[name].start(),
})
const fillDisk = (name: ServerName): Pick<Outage, 'begin' | 'end'> => ({
  begin: ({ disks }) => disks![name].fill(),
  end: ({ disks }) => disks![name].free(),
})

export const outages: readonly Outage[] = [
  {
    name: 'nats-paused',
    lastsMs: 30_000,
    ...hang('nats'),
    expected: {
      ...continues,
      intake: 'never',
      ready: { ...all, ingest: false, scorer: false, console: false },
    },
  },
  {
    // Messages that it has not read yet are lost with its connections.
    name: 'nats-hung',
    lastsMs: 25_000,
    ...hang('nats'),
    end: ({ servers }) => servers.nats.signal('SIGKILL'),
    expected: {
      ...continues,
      intake: 'never',
      ready: { ...all, ingest: false, scorer: false, console: false },
    },
  },
  {
    name: 'postgres-down',
    lastsMs: 60_000,
    ...takeDown('postgres'),
    // Every call of the api looks up its key in Postgres.
    expected: {
      intake: true,
      alerts: false,
      device: false,
      ready: { ingest: true, scorer: false, api: false, delivery: false, console: false },
    },
  },
  {
    name: 'clickhouse-down',
    lastsMs: 60_000,
    ...takeDown('clickhouse'),
    expected: { ...continues, device: false, ready: { ...all, scorer: false, api: false } },
  },
  {
    name: 'clickhouse-paused',
    lastsMs: 20_000,
    ...hang('clickhouse'),
    expected: { ...continues, device: false, ready: { ...all, scorer: false, api: false } },
  },
  {
    // No message fits, although scorers trim decided ones.
    name: 'stream-full',
    lastsMs: 20_000,
    begin: (rig) => limitStream(rig, 100),
    end: (rig) => limitStream(rig, 16 * 1024 ** 3),
    expected: { ...continues, intake: false, ready: { ...all, ingest: false } },
  },
  {
    name: 'disk-nats',
    lastsMs: 20_000,
    ...fillDisk('nats'),
    // The supervisor restarts it repeatedly. A start frees some space, so it sometimes accepts
    // messages.
    expected: {
      ...continues,
      intake: false,
      ready: { ...all, ingest: null, scorer: null, console: null },
    },
  },
  {
    name: 'disk-postgres',
    lastsMs: 30_000,
    ...fillDisk('postgres'),
    // It serves reads until it needs another segment of its log, and then recovers repeatedly.
    // Without new alerts delivery has nothing to write.
    expected: {
      intake: true,
      alerts: null,
      device: null,
      ready: { ingest: true, scorer: false, api: null, delivery: null, console: null },
    },
  },
  {
    name: 'disk-clickhouse',
    lastsMs: 30_000,
    ...fillDisk('clickhouse'),
    expected: { ...continues, ready: { ...all, scorer: false } },
  },
]

async function limitStream({ nats }: OutageRig, maxBytes: number): Promise<void> {
  const { config } = await nats.manager.streams.info(telemetryStream)
  await nats.manager.streams.update(telemetryStream, { ...config, max_bytes: maxBytes })
}

/**
 * Two outages together: the second begins `apartMs` after the first, and ends that much before it.
 */
export function bothOf(first: Outage, second: Outage, apartMs: number): Outage {
  const each = [first.expected, second.expected]
  const both = (of: (expected: Expected) => boolean | null) => {
    const expected = each.map(of)
    return expected.includes(false) ? false : expected.includes(null) ? null : true
  }
  const names = Object.keys(all) as ServiceName[]
  const ready = names.map((name) => [name, both((expected) => expected.ready[name])])
  return {
    name: `${first.name} and ${second.name}`,
    lastsMs: Math.max(first.lastsMs, second.lastsMs),
    begin: async (rig) => {
      await first.begin(rig)
      await pause(apartMs)
      await second.begin(rig)
    },
    end: async (rig) => {
      await second.end(rig)
      await pause(apartMs)
      await first.end(rig)
    },
    expected: {
      intake: each.some(({ intake }) => intake === 'never')
        ? 'never'
        : each.every(({ intake }) => intake),
      alerts: both(({ alerts }) => alerts),
      device: both(({ device }) => device),
      ready: Object.fromEntries(ready) as Expected['ready'],
    },
  }
}

/** Pairs that affect different servers. */
export const pairs: readonly [string, string][] = [
  ['nats-paused', 'postgres-down'],
  ['nats-paused', 'clickhouse-down'],
  ['postgres-down', 'clickhouse-down'],
  ['stream-full', 'clickhouse-paused'],
  ['disk-postgres', 'clickhouse-down'],
  ['disk-clickhouse', 'postgres-down'],
  ['disk-clickhouse', 'nats-paused'],
]
