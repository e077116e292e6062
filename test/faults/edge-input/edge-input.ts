/**
 * `npm run faults -- edge-input [--phases 10] [--each 4000] [--seed S]`: every kind of hostile
 * request, once each and then all at once, beside good traffic. Exits with 1 when a response is a
 * 500 or wrong, when the stream differs from the accepted events, when reasons for a 401 can be
 * distinguished, or when good traffic waits more than twice as long as alone.
 */
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { readMemoryMb } from '../../bench/measured-process.ts'
import { percentile } from '../../support/process/percentile.ts'
import { describeCounts } from '../support/counts.ts'
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'
import { compareAnswers, compareTimes, toUnauthenticated, toUnsigned } from './compare-refusals.ts'
import { type HostilePool, measurePressure, type Pressure } from './pressure.ts'
import { checkStored, type HostileRig, startHostileRig } from './rig.ts'
import { neverRead, openIdle, type SlowEnd, sendSlowly } from './slow-senders.ts'
import {
  makePooledCases,
  newTally,
  type Refused,
  sendFollowed,
  sendPooled,
  sendSmuggling,
  type Tally,
} from './stages.ts'

const goodPerSecond = 200
/** More than an edge accepts. */
const idleConnections = 8_300
/** Idle connections in each phase beside good traffic. */
const idleBeside = 4_000
/** A request has ten seconds, checked once a second; the rest is for a busy machine. */
const slowLimitMs = 14_000
/** The chance that one kind of refusal takes longer than another is 0.5 within this margin. */
const chanceMargin = 0.03
const p99Times = 2
/** The buffers of sender and receiver, and the objects of some requests. */
const unreadBytesMax = 64 * 1024 * 1024
const memoryGrowthMbMax = 300

type Settings = { phases: number; each: number; random: () => number }

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { phases, each, seed } = readOptions(args, { phases: 10, each: 4_000, seed: randomSeed() })
  print(`--seed ${seed}`)
  const random = createRandom(seed, 'hostile').next
  const rig = await startHostileRig()
  try {
    reportBroken(await sendEverything(rig, { phases, each, random }))
  } finally {
    await rig.stop()
  }
}

/** @returns the broken guarantees */
async function sendEverything(rig: HostileRig, settings: Settings): Promise<string[]> {
  const broken: string[] = []
  const pid = rig.edge.child.pid!
  const before = readMemoryMb(pid).now
  const tally = newTally()
  rig.traffic.start(goodPerSecond)
  await sendPooled(rig, tally)
  await sendSmuggling(rig, tally)
  const refused = await sendFollowed(rig, tally)
  broken.push(...reportTally(tally), ...(await reportHangers(rig)))
  const beside = rig.note(await rig.traffic.stop())
  const { 200: well = 0 } = beside.statuses
  print(`good requests beside all of them: ${beside.latencies.length}, not answered 200:`)
  print(`  ${beside.latencies.length - well}`)
  if (well < beside.latencies.length) broken.push('good traffic was refused')
  broken.push(...(await reportAlike(rig, settings)))
  broken.push(...(await reportPressure(rig, settings)))
  const memory = readMemoryMb(pid)
  print(
    `memory of the edge: ${mb(before)} before, ${mb(memory.now)} after, ${mb(memory.peak)} peak`,
  )
  if (memory.peak - before > memoryGrowthMbMax) broken.push('the edge grew')
  if (rig.edge.child.exitCode !== null) broken.push('the edge ended')
  await reportRefusals(rig)
  broken.push(...(await reportStored(rig, refused)))
  return broken
}

const mb = (megabytes: number) => `${Math.round(megabytes)} MB`

function reportTally({ sent, statuses, breaches }: Tally): string[] {
  const total = [...sent.values()].reduce((sum, times) => sum + times, 0)
  print(`hostile requests, once each: ${total}`)
  for (const [family, times] of sent) print(`  ${family}: ${times}`)
  print(`  responses: ${describeCounts(statuses)}`)
  print(`  wrong responses: ${breaches.length}`)
  for (const breach of breaches.slice(0, 20)) print(`    ${JSON.stringify(breach)}`)
  const worst = breaches.some(({ got }) => /^\D*5\d\d/.test(got)) ? ', with a 5xx' : ''
  return breaches.length > 0 ? [`${breaches.length} wrong responses${worst}`] : []
}

/** Slow senders, silent connections and a client that never reads. */
async function reportHangers(rig: HostileRig): Promise<string[]> {
  const broken: string[] = []
  const idle = await openIdle(rig.port, idleConnections)
  const ends = await sendSlowly(rig.port, rig.tenants.acme, { each: 20 })
  const kept = idle.open()
  print(`${idleConnections} idle connections: ${idle.refused} refused, ${kept} open in the end`)
  if (idle.refused > 0) broken.push('idle connections were refused')
  if (kept > 0) broken.push(`${kept} idle connections are open after ten seconds`)
  idle.close()
  const kinds = Map.groupBy(ends, ({ kind }) => kind)
  for (const [kind, own] of kinds) print(`slow, ${kind}: ${describeSlow(own)}`)
  const late = ends.filter(({ tookMs, status }) => tookMs > slowLimitMs || status === 200)
  if (late.length > 0) broken.push(`${late.length} slow senders were not cut off in time`)
  const taken = await neverRead(rig.port, unreadBytesMax)
  print(`a client that reads no responses could send ${mb(taken / 1e6)}`)
  if (taken >= unreadBytesMax) broken.push('a client that reads no responses can send without end')
  return broken
}

function describeSlow(ends: SlowEnd[]): string {
  const took = ends.map(({ tookMs }) => tookMs / 1_000)
  const statuses = [...new Set(ends.map(({ status }) => status))].join(', ')
  const [least, most] = [percentile(took, 0.01), percentile(took, 1)]
  return `${ends.length}, cut off after ${least.toFixed(1)} to ${most.toFixed(1)} s, ${statuses}`
}

async function reportAlike(rig: HostileRig, { each, random }: Settings): Promise<string[]> {
  const broken: string[] = []
  const kinds = toUnauthenticated(rig.tenants)
  for (const alike of [kinds, toUnsigned(rig.tenants)]) {
    const answers = await compareAnswers(rig.client, alike)
    print(
      `distinct responses to ${alike.length} kinds of requests without authentication: ${answers.length}`,
    )
    if (answers.length !== 1) broken.push(`refusals differ: ${answers.join(' | ')}`)
  }
  for (const bodyBytes of [0, 60_000]) {
    const { medians, worst } = await compareTimes(rig.port, kinds, { each, bodyBytes, random })
    print(`times of ${each} of each kind, bodies filled up by ${bodyBytes} bytes:`)
    for (const { name, us } of medians) print(`  ${name}: median ${us} us`)
    print(`  least alike: "${worst.first}" takes longer than "${worst.second}"`)
    print(`  with a chance of ${worst.chance.toFixed(3)} (0.5 within ${chanceMargin})`)
    if (Math.abs(worst.chance - 0.5) > chanceMargin) {
      broken.push(`"${worst.first}" differs from "${worst.second}" in time`)
    }
  }
  return broken
}

async function reportPressure(rig: HostileRig, settings: Settings): Promise<string[]> {
  const { phases, random } = settings
  const families = [...Map.groupBy(makePooledCases(rig), ({ family }) => family).values()]
  const pool: HostilePool = { families, singles: rig.singles }
  const pressure = await measurePressure(rig, pool, {
    phases,
    random,
    goodPerSecond,
    idleConnections: idleBeside,
    phaseMs: 2_500,
    hostilePerSecond: 200,
    slowEach: 5,
  })
  return describePressure(pressure)
}

function describePressure({ alone, beside, unwell, hostile, breaches }: Pressure): string[] {
  const broken: string[] = []
  const list = (values: number[]) => values.map((ms) => ms.toFixed(1)).join(', ')
  print(`p99 of ${goodPerSecond} good requests a second in ${alone.length} phases of each:`)
  print(`  alone: ${list(alone)} ms`)
  print(`  beside ${hostile} hostile ones, ${idleBeside} idle and 45 slow connections:`)
  print(`  ${list(beside)} ms`)
  const ratio = percentile(beside, 0.5) / percentile(alone, 0.5)
  print(`  median to median: ${ratio.toFixed(2)} times; good ones not answered 200: ${unwell}`)
  if (ratio > p99Times) broken.push(`good traffic waits ${ratio.toFixed(2)} times as long`)
  if (unwell > 0) broken.push('good traffic was refused beside hostile traffic')
  if (breaches.length > 0) {
    broken.push(`wrong responses under pressure: ${JSON.stringify(breaches.slice(0, 5))}`)
  }
  return broken
}

/** Prints the edge's own counters as proof that everything arrived. */
async function reportRefusals({ edge }: HostileRig): Promise<void> {
  const text = await (await fetch(`${edge.internalUrl}/metrics`)).text()
  print('counted by the edge:')
  for (const line of text.split('\n')) {
    if (!/^di_(ingest_refused|ingest_accepted|http_unreadable)/.test(line)) continue
    if (!line.endsWith(' 0')) print(`  ${line}`)
  }
}

async function reportStored(rig: HostileRig, refused: Refused): Promise<string[]> {
  const broken: string[] = []
  const { stored, lost, foreign } = await checkStored(rig.rig.nats, rig.accepted)
  print(`accepted: ${rig.accepted.size}, stored: ${stored}, accepted and lost: ${lost.length}`)
  print(`stored and not accepted: ${foreign.length}`)
  for (const { eventId, deviceId } of foreign.slice(0, 20)) {
    const one = rig.singles.find(({ request }) => request.includes(deviceId))
    print(`  ${eventId}: ${refused.get(eventId) ?? one?.name ?? 'sent as hostile'}`)
  }
  if (lost.length > 0) broken.push('accepted events are lost')
  if (foreign.length > 0) broken.push('something is stored that was not accepted')
  return broken
}
