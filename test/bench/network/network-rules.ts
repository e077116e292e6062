/**
 * What a rule on networks costs the scorer: the time and the CPU per event of loading the risk
 * features of a batch with `devices_per_network` in the policy, beside the same batch without it.
 * Its events are on networks of four devices, or all on one with as many rows as are read of a key.
 */
import { activityRowsMax } from '#shared/core/base/limits/history.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createActivityStore } from '#shared/io/velocity/activity-store.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { untilMergesEnd } from '../drain/merges.ts'
import { fillActivity, rowsPerEvent, toSubject } from '../history/activity-rows.ts'
import { readCpuSeconds } from '../measured-process.ts'
import { type Check, type Figure, publishReport, readClickhouseVersion } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'

const tenantId = 'fleet'
const events = Math.ceil(1_000_000 / rowsPerEvent)
/** A small batch, which is not screened, and those of 2,000 events/s and of a drain. */
const batches = [10, 400, 4_000]
const rounds = 7
const devicesAtHome = 4
const rule = { metric: 'devices_per_network', windowSeconds: 86_400, threshold: 20, weight: 15 }
const rules = [...defaultPolicy.velocity, rule as (typeof defaultPolicy.velocity)[number]]

/** Where the events of a batch are. */
const places = {
  home: (n: number) => `home-${Math.floor(n / devicesAtHome)}`,
  crowd: () => 'crowd',
}

export async function run(): Promise<void> {
  const server = await startClickhouse()
  try {
    await migrateClickhouse(server.url)
    const clickhouse = createClickhouse(server.url, { name: 'bench', requestTimeoutMs: 300_000 })
    await fillActivity(clickhouse, { tenantId, from: 0, to: events })
    await fillNetwork(clickhouse, `'home-' || toString(intDiv(number, ${devicesAtHome}))`, 4_000)
    await fillNetwork(clickhouse, `'crowd'`, activityRowsMax)
    await untilMergesEnd(clickhouse, 120_000)
    const figures: Figure[] = []
    const checks: Check[] = []
    for (const batch of batches) {
      for (const place of ['home', 'crowd'] as const) {
        const measured = await measure(clickhouse, server.pid, { batch, place })
        figures.push(...measured.figures)
        checks.push(measured.check)
      }
    }
    const version = await readClickhouseVersion(clickhouse)
    await clickhouse.close()
    publishReport({
      part: 'network-rules',
      command: 'npm run bench -- network-rules',
      versions: { clickhouse: version },
      durability: 'nothing is written while it is measured',
      figures,
      checks,
    })
  } finally {
    await server.stop()
  }
}

/** Rows of a network, each of another device, as the view on telemetry would make them. */
async function fillNetwork(clickhouse: Clickhouse, name: string, rows: number): Promise<void> {
  await clickhouse.command({
    query: `
      insert into activity (tenant_id, key_hash, stream_offset, received_at, event_hash,
        packed_facts)
      select '${tenantId}', reinterpretAsUInt64(SHA256(concat('network ', ${name}))), number + 1,
        now64(3) - interval 1 hour as received_at, sipHash64('event', number) as event_hash,
        toFixedString(concat(repeat('\\0', 32), reinterpretAsFixedString(sipHash64(number)),
          repeat('\\0', 24), reinterpretAsFixedString(event_hash),
          reinterpretAsFixedString(toUnixTimestamp64Milli(received_at))), 80)
      from numbers(${rows})`,
  })
}

async function measure(
  clickhouse: Clickhouse,
  pid: number,
  { batch, place }: { batch: number; place: keyof typeof places },
) {
  const store = createActivityStore(clickhouse)
  const readings = { without: newReadings(), with: newReadings() }
  let exceeded = 0
  for (let round = 0; round <= rounds; round++) {
    for (const [name, some] of [
      ['without', defaultPolicy.velocity],
      ['with', rules],
    ] as const) {
      // Subjects from the whole fleet, at their latest event, never those that were just read.
      const subjects = Array.from({ length: batch }, (_, n) => {
        const event = Math.floor(((n + round / (rounds + 1)) * events) / batch)
        const network = places[place](n)
        return { ...toSubject(tenantId, event), streamOffset: events, network, rules: some }
      })
      const before = [performance.now(), readCpuSeconds(pid), process.cpuUsage().user] as const
      const answers = await store.countActivity(subjects)
      exceeded += answers.filter(({ counts }) =>
        [...counts].some(([key, count]) => key.startsWith(rule.metric) && count > rule.threshold),
      ).length
      // The first round is cold and does not count.
      if (round === 0) continue
      const { took, engine, scorer } = readings[name]
      took.push(((performance.now() - before[0]) * 1_000) / batch)
      engine.push(((readCpuSeconds(pid) - before[1]) * 1_000_000) / batch)
      scorer.push((process.cpuUsage().user - before[2]) / batch)
    }
  }
  const where = `batches of ${batch}, ${place === 'home' ? 'small networks' : 'one of 20,000 rows'}`
  const expected = place === 'home' ? 0 : batch * (rounds + 1)
  const toFigure = (what: 'took' | 'engine' | 'scorer', name: string): Figure => {
    const [value, baseline] = [readings.with[what], readings.without[what]]
    return {
      name: `${where}: ${name}`,
      unit: 'µs',
      value: toSpread(value),
      baseline: { name: 'without the rule', value: toSpread(baseline) },
      ratio: toRatios(value, baseline),
    }
  }
  return {
    figures: [
      toFigure('took', 'each'),
      toFigure('engine', 'ClickHouse CPU each'),
      toFigure('scorer', 'scorer CPU each'),
    ],
    check: {
      name: `${where}: the rule finds the crowd and nobody at home`,
      ok: exceeded === expected,
      detail: `${exceeded} of ${expected}`,
    },
  }
}

const newReadings = () => ({
  took: [] as number[],
  engine: [] as number[],
  scorer: [] as number[],
})
