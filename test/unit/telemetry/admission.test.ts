// Admission: every read submission is decided once and in order, as soon as there is capacity, and
// decisions never fill a whole turn of the event loop. Under overload the newest come first, and
// what has waited too long is refused without being decided.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Arrival, createAdmission } from '../../../services/ingest/admission.ts'

type Named = Arrival & { name: string }

const limits = {
  scoringSliceMs: 10,
  queuedRequestsMax: 4,
  queuedBytesMax: 1_000,
  queuedMsMax: 1_000,
  newestFirstMs: 250,
}

/** An admission with its own clock, event loop and capacity. */
function createBench(options: { limits?: Partial<typeof limits>; decisionMs?: number } = {}) {
  const decided: string[] = []
  const refused: string[] = []
  const deferred: (() => void)[] = []
  const later: { run: () => void; ms: number }[] = []
  const bench = { nowMs: 0, capacity: Number.POSITIVE_INFINITY }
  const admission = createAdmission<Named>({
    process: ({ name }) => {
      decided.push(name)
      bench.capacity--
      bench.nowMs += options.decisionMs ?? 1
    },
    refuse: ({ name }) => refused.push(name),
    hasCapacity: () => bench.capacity > 0,
    defer: (run) => deferred.push(run),
    later: (run, ms) => later.push({ run, ms }),
    nowMs: () => bench.nowMs,
    limits: { ...limits, ...options.limits },
  })
  const admit = (name: string, bytes = 10) =>
    admission.admit({ name, body: Buffer.alloc(bytes), arrivedMs: bench.nowMs })
  /** Runs what is due at the end of this turn, and nothing that is deferred meanwhile. */
  const turn = () => {
    for (const run of deferred.splice(0)) run()
  }
  const look = () => {
    for (const { run } of later.splice(0)) run()
  }
  return { admission, admit, bench, decided, refused, later, turn, look }
}

const namesOf = (count: number) => Array.from({ length: count }, (_, at) => `r${at}`)

describe('a submission is decided', () => {
  it('at once while group commit accepts events', () => {
    const { admission, admit, decided } = createBench()
    admit('a')
    admit('b')
    expect(decided).toEqual(['a', 'b'])
    expect(admission.queued()).toEqual({ requests: 0, bytes: 0 })
  })

  it('after a tenth of a second when no signal of capacity comes', () => {
    const { admit, bench, decided, later, turn, look } = createBench()
    bench.capacity = 0
    admit('a')
    admit('b')
    expect(later.map(({ ms }) => ms)).toEqual([100])
    look()
    turn()
    expect(decided).toEqual([])
    expect(later).toHaveLength(1)
    bench.capacity = 5
    look()
    expect(decided).toEqual(['a', 'b'])
    turn()
    expect(later).toHaveLength(0)
  })
})

describe('a submission is refused without being decided', () => {
  it('at once when the queue is full, in requests or in bytes', () => {
    const { admission, admit, bench, decided, refused } = createBench()
    bench.capacity = 0
    for (const name of ['a', 'b', 'c', 'd', 'e']) admit(name)
    expect(refused).toEqual(['e'])
    const byBytes = createBench()
    byBytes.bench.capacity = 0
    byBytes.admit('a', 900)
    byBytes.admit('b', 101)
    byBytes.admit('c', 100)
    expect(byBytes.refused).toEqual(['b'])
    expect(byBytes.admission.queued()).toEqual({ requests: 2, bytes: 1_000 })
    bench.capacity = 10
    admission.resume()
    expect(decided).toEqual(['a', 'b', 'c', 'd'])
  })

  it('once it has waited too long, also while there is no capacity', () => {
    const { admission, admit, bench, decided, refused } = createBench()
    bench.capacity = 0
    admit('a')
    bench.nowMs += limits.queuedMsMax
    admit('b')
    admission.resume()
    expect(refused).toEqual([])
    bench.nowMs++
    admission.resume()
    expect({ decided, refused }).toEqual({ decided: [], refused: ['a'] })
    expect(admission.queued()).toEqual({ requests: 1, bytes: 10 })
  })
})

describe('under overload', () => {
  it('the newest come first, until the oldest has waited for a moment only', () => {
    const { admission, admit, bench, decided } = createBench()
    bench.capacity = 0
    admit('a')
    bench.nowMs += limits.newestFirstMs + 1
    expect(admission.overloaded()).toBe(true)
    admit('b')
    admit('c')
    bench.capacity = 2
    admission.resume()
    expect(decided).toEqual(['c', 'b'])
    bench.capacity = 1
    admission.resume()
    expect(admission.overloaded()).toBe(false)
  })

  it('an edge decides as much as it can, and refuses the rest', () => {
    const bench = createBench({ decisionMs: 5, limits: { queuedRequestsMax: 100_000 } })
    const turns = 500
    // Ten times what two decisions a turn can take.
    for (let turn = 0; turn < turns; turn++) {
      for (let n = 0; n < 20; n++) bench.admit(`${turn}-${n}`)
      const before = bench.bench.nowMs
      bench.turn()
      bench.look()
      bench.bench.nowMs = Math.max(bench.bench.nowMs, before + 10)
    }
    expect(bench.decided.length).toBeGreaterThanOrEqual(2 * turns)
    expect(bench.refused.length).toBeGreaterThan(10 * turns)
  })
})

describe('drained', () => {
  it('resolves once every admitted submission is decided, at once when none waits', async () => {
    const { admission, admit, bench } = createBench()
    await admission.drained()
    bench.capacity = 0
    admit('a')
    admit('b')
    let drained = false
    const done = admission.drained().then(() => {
      drained = true
    })
    bench.capacity = 1
    admission.resume()
    await new Promise((resolve) => setImmediate(resolve))
    expect(drained).toBe(false)
    bench.capacity = 1
    admission.resume()
    await done
    expect(drained).toBe(true)
  })
})

it('every submission is decided once and in order, under any schedule', () => {
  const step = fc.oneof(
    fc.constant('admit' as const),
    fc.constant('resume' as const),
    fc.constant('turn' as const),
    fc.constant('look' as const),
    fc.constant('full' as const),
    fc.constant('capacity' as const),
  )
  // Nothing waits so long that it is refused, or comes before older ones.
  const patient = { queuedRequestsMax: 1_000, queuedMsMax: 1e9, newestFirstMs: 1e9 }
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 12 }), (steps, ms) => {
      const bench = createBench({ decisionMs: ms, limits: patient })
      let admitted = 0
      let usedMs = 0
      for (const one of steps) {
        const before = bench.decided.length
        if (one === 'admit') bench.admit(`r${admitted++}`)
        else if (one === 'resume') bench.admission.resume()
        else if (one === 'turn') bench.turn()
        else if (one === 'look') bench.look()
        else bench.bench.capacity = one === 'full' ? 0 : Number.POSITIVE_INFINITY
        usedMs = (one === 'turn' ? 0 : usedMs) + (bench.decided.length - before) * ms
        // A turn takes no decision once its time is used, and with time and capacity takes all.
        expect(usedMs).toBeLessThan(limits.scoringSliceMs + ms)
        expect(bench.decided).toEqual(namesOf(bench.decided.length))
        const canDecide = usedMs < limits.scoringSliceMs && bench.bench.capacity > 0
        if (one === 'resume' && canDecide) expect(bench.decided).toHaveLength(admitted)
      }
      bench.bench.capacity = Number.POSITIVE_INFINITY
      // Only its own turns and timers bring it to its end.
      for (let n = 0; n < 200; n++) {
        bench.turn()
        bench.look()
      }
      expect(bench.decided).toEqual(namesOf(admitted))
      expect(bench.admission.queued()).toEqual({ requests: 0, bytes: 0 })
    }),
    { numRuns: 500 },
  )
})
