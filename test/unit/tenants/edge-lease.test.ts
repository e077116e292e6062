/**
 * The credential lease, alone and against a model of the bucket. Once the console has waited for a
 * change, no edge with a lease uses the state before it, under any race of announcements,
 * deliveries, lost acknowledgements, pauses and restarted watches.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createEdgeLease, type EdgeLease } from '../../../shared/io/tenants/directory/edge-lease.ts'

const leaseMs = 2_000
const marginMs = 250

function createBench(announce: (applied: number) => Promise<number>) {
  const clock = { nowMs: 1_000 }
  const outcomes: string[] = []
  let currents = 0
  const lease = createEdgeLease({
    announce,
    onCurrent: () => currents++,
    onAnnounced: (outcome) => outcomes.push(outcome),
    nowMs: () => clock.nowMs,
    leaseMs,
  })
  return { lease, clock, outcomes, currents: () => currents }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a lease', () => {
  it('is invalid until an announcement has come back through the watch', async () => {
    const { lease, currents } = createBench(async () => 5)
    lease.restart()
    lease.renew()
    await turn()
    expect(lease.valid()).toBe(false)
    lease.applied(4)
    expect(lease.valid()).toBe(false)
    lease.applied(5)
    expect(lease.valid()).toBe(true)
    expect(currents()).toBe(1)
  })

  it('starts when the announcement is sent, not when it comes back', async () => {
    let stored = (_revision: number) => {}
    const { lease, clock } = createBench(
      () => new Promise((resolve) => (stored = resolve as typeof stored)),
    )
    lease.renew()
    clock.nowMs += 900
    stored(1)
    await turn()
    clock.nowMs += 900
    lease.applied(1)
    expect(lease.valid()).toBe(true)
    clock.nowMs += 199
    expect(lease.valid()).toBe(true)
    clock.nowMs += 1
    expect(lease.valid()).toBe(false)
  })

  it('is not proven by an announcement from before the current watch', async () => {
    let stored = (_revision: number) => {}
    const { lease } = createBench(
      () => new Promise((resolve) => (stored = resolve as typeof stored)),
    )
    lease.renew()
    lease.restart()
    stored(1)
    await turn()
    lease.applied(9)
    expect(lease.valid()).toBe(false)
  })

  it('ends at once when it is dropped, and a late proof does not renew it', async () => {
    const { lease } = createBench(async () => 1)
    lease.renew()
    await turn()
    lease.applied(1)
    lease.drop()
    expect(lease.valid()).toBe(false)
    lease.applied(2)
    expect(lease.valid()).toBe(false)
  })

  it('stays valid when the watch restarts, until it expires', async () => {
    const { lease, clock } = createBench(async () => 1)
    lease.renew()
    await turn()
    lease.applied(1)
    lease.restart()
    expect(lease.valid()).toBe(true)
    clock.nowMs += leaseMs
    expect(lease.valid()).toBe(false)
  })

  it('announces the active revision, not the progress of a new watch', async () => {
    const announced: number[] = []
    let revision = 10
    const { lease } = createBench(async (applied) => {
      announced.push(applied)
      return ++revision
    })
    lease.renew()
    await turn()
    lease.applied(11)
    await turn()
    lease.applied(17)
    lease.restart()
    lease.applied(3)
    lease.renew()
    await turn()
    expect(announced).toEqual([0, 11, 17])
  })

  it('announces once more after any number of changes meanwhile', async () => {
    let open: ((revision: number) => void)[] = []
    const { lease, outcomes } = createBench(() => new Promise((resolve) => open.push(resolve)))
    lease.renew()
    lease.announceChange()
    lease.announceChange()
    lease.announceChange()
    open.shift()!(1)
    await turn()
    expect(open).toHaveLength(1)
    open.shift()!(2)
    await turn()
    expect(open).toHaveLength(0)
    expect(outcomes).toEqual(['stored', 'stored'])
    open = []
  })

  it('does not repeat a failed announcement in a tight loop', async () => {
    let tries = 0
    const { lease, outcomes } = createBench(async () => {
      tries++
      throw new Error('no server')
    })
    lease.announceChange()
    lease.announceChange()
    await turn()
    expect(tries).toBe(1)
    expect(outcomes).toEqual(['failed'])
  })
})

/** One entry of the bucket's sequence: a change of a key, or an edge's announcement. */
type Entry = { revision: number; key: string; applied: number }

/**
 * An edge of the model: the pending entries of its watch, its staging snapshot and its active one.
 */
type ModelEdge = {
  lease: EdgeLease
  queue: Entry[]
  staging: Map<string, number>
  active: Map<string, number>
}

const pick = <Kind extends string>(kind: Kind) =>
  fc.record({ kind: fc.constant(kind), edge: fc.nat(2), ms: fc.nat(900) })

const event = fc.oneof(
  { weight: 6, arbitrary: pick('renew') },
  { weight: 12, arbitrary: pick('deliver') },
  { weight: 2, arbitrary: pick('change') },
  { weight: 1, arbitrary: pick('rewatch') },
  { weight: 3, arbitrary: pick('pass') },
)

type Event = { kind: 'renew' | 'deliver' | 'change' | 'rewatch' | 'pass'; edge: number; ms: number }

/** A bucket with three edges; the scheduler decides the order of deliveries. */
function createModel(scheduler: fc.Scheduler, isLost: () => boolean) {
  let nowMs = 0
  const log: Entry[] = []
  const edges: ModelEdge[] = []
  const waiting: { entry: Entry; startMs: number }[] = []
  /** For each key, the newest change that the console has waited for. */
  const settled = new Map<string, number>()
  const seen = { confirmed: 0, expired: 0, refusedMeanwhile: 0 }

  const append = (key: string, applied: number) => {
    const entry = { revision: log.length + 1, key, applied }
    log.push(entry)
    // The bucket keeps the last entry of a key: one that is replaced is not delivered any more.
    for (const edge of edges) edge.queue = [...edge.queue.filter((one) => one.key !== key), entry]
    return entry
  }
  const newestByKey = () => [...new Map(log.map((entry) => [entry.key, entry])).values()]
  const watch = (edge: ModelEdge) => {
    edge.queue = newestByKey().sort((a, b) => a.revision - b.revision)
    edge.staging = new Map()
    edge.lease.restart()
    edge.lease.announceChange()
  }
  const createModelEdge = (id: number): ModelEdge => {
    const edge: ModelEdge = {
      queue: [],
      staging: new Map(),
      active: new Map(),
      lease: createEdgeLease({
        announce: async (applied) => {
          await scheduler.schedule(Promise.resolve(), `announce ${id}`)
          const { revision } = append(`edge ${id}`, applied)
          await scheduler.schedule(Promise.resolve(), `acknowledge ${id}`)
          if (isLost()) throw new Error('the acknowledgement was lost')
          return revision
        },
        onCurrent: () => {
          edge.active = edge.staging
        },
        onAnnounced: () => undefined,
        nowMs: () => nowMs,
        leaseMs,
      }),
    }
    return edge
  }
  const deliver = (edge: ModelEdge) => {
    const entry = edge.queue.shift()
    if (entry === undefined) return
    const isChange = !entry.key.startsWith('edge')
    if (isChange) edge.staging.set(entry.key, entry.revision)
    // Only a copy that was read to the end has all that came before.
    if (edge.queue.length === 0) edge.lease.applied(entry.revision)
    if (isChange && edge.active === edge.staging) edge.lease.announceChange()
  }
  const settle = () => {
    const announced = newestByKey().filter(({ key }) => key.startsWith('edge'))
    for (const wait of waiting.splice(0)) {
      const confirmed = announced.every(({ applied }) => applied >= wait.entry.revision)
      const expired = nowMs >= wait.startMs + leaseMs + marginMs
      if (!confirmed && !expired) waiting.push(wait)
      else {
        seen[confirmed ? 'confirmed' : 'expired']++
        settled.set(wait.entry.key, wait.entry.revision)
      }
    }
    for (const { lease, active } of edges) {
      if (!lease.valid()) continue
      for (const [key, revision] of settled) {
        expect(active.get(key) ?? 0, key).toBeGreaterThanOrEqual(revision)
      }
    }
  }
  const act = ({ kind, edge: id, ms }: Event) => {
    const edge = edges[id]!
    if (kind === 'pass') nowMs += ms
    else if (kind === 'renew') edge.lease.renew()
    else if (kind === 'deliver') deliver(edge)
    else if (kind === 'rewatch') watch(edge)
    else waiting.push({ entry: append(`key ${ms % 3}`, 0), startMs: nowMs })
    settle()
    if (!edge.lease.valid()) seen.refusedMeanwhile++
  }
  edges.push(...[0, 1, 2].map(createModelEdge))
  for (const edge of edges) watch(edge)
  return { act, seen }
}

describe('against a model of the bucket', () => {
  it('every edge with a lease uses a change once the console has waited for it', async () => {
    const seen = { confirmed: 0, expired: 0, refusedMeanwhile: 0 }
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(event, { minLength: 10, maxLength: 100 }),
        fc.infiniteStream(fc.nat(7)),
        async (scheduler, events, chances) => {
          const model = createModel(scheduler, () => chances.next().value === 0)
          const run = async () => {
            for (const one of events) {
              await scheduler.schedule(Promise.resolve(), one.kind)
              model.act(one)
            }
          }
          await scheduler.waitFor(run())
          seen.confirmed += model.seen.confirmed
          seen.expired += model.seen.expired
          seen.refusedMeanwhile += model.seen.refusedMeanwhile
        },
      ),
      { numRuns: 1_500 },
    )
    // The model is useful only if both ways to settle a change occurred.
    expect(seen.confirmed).toBeGreaterThan(20)
    expect(seen.expired).toBeGreaterThan(20)
    expect(seen.refusedMeanwhile).toBeGreaterThan(20)
  })
})
