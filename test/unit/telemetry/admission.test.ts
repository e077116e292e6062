// Admission: every read submission is decided once and in order, as soon as there is capacity, and
// decisions never fill a whole turn of the event loop.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Arrival, createAdmission } from '../../../services/ingest/admission.ts'

type Named = Arrival & { name: string }

const limits = { scoringSliceMs: 10, queuedRequestsMax: 4, queuedBytesMax: 1_000 }

/** An admission with its own clock, event loop and capacity. */
function createBench(options: { limits?: Partial<typeof limits>; decisionMs?: number } = {}) {
  const decided: string[] = []
  const deferred: (() => void)[] = []
  const later: { run: () => void; ms: number }[] = []
  const bench = { nowMs: 0, capacity: Number.POSITIVE_INFINITY }
  const admission = createAdmission<Named>({
    process: ({ name }) => {
      decided.push(name)
      bench.capacity--
      bench.nowMs += options.decisionMs ?? 1
    },
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
  return { admission, admit, bench, decided, later, turn, look }
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

  it('in order of arrival once there is capacity again, the waiting ones first', () => {
    const { admission, admit, bench, decided } = createBench()
    bench.capacity = 1
    for (const name of ['a', 'b', 'c']) admit(name)
    expect(decided).toEqual(['a'])
    expect(admission.queued()).toEqual({ requests: 2, bytes: 20 })
    bench.capacity = 1
    admit('d')
    expect(decided).toEqual(['a'])
    admission.resume()
    expect(decided).toEqual(['a', 'b'])
    bench.capacity = 5
    admission.resume()
    expect(decided).toEqual(['a', 'b', 'c', 'd'])
    expect(admission.queued()).toEqual({ requests: 0, bytes: 0 })
  })

  it('in a later turn of the event loop when this one has used its time', () => {
    const { admit, decided, turn } = createBench({ limits: { queuedRequestsMax: 100 } })
    for (const name of namesOf(25)) admit(name)
    expect(decided).toHaveLength(10)
    turn()
    expect(decided).toHaveLength(20)
    turn()
    expect(decided).toEqual(namesOf(25))
  })

  it('one per turn when a single decision takes longer than a turn may', () => {
    const { admit, decided, turn } = createBench({ decisionMs: 50 })
    for (const name of ['a', 'b', 'c']) admit(name)
    for (const count of [1, 2, 3]) {
      expect(decided).toHaveLength(count)
      turn()
    }
  })

  it('not in a turn that has used its time, although there is capacity again', () => {
    const { admission, admit, decided, turn } = createBench({ decisionMs: 10 })
    admit('a')
    admit('b')
    admission.resume()
    expect(decided).toEqual(['a'])
    turn()
    expect(decided).toEqual(['a', 'b'])
  })

  it('at once when the queue is full, in requests or in bytes', () => {
    const { admission, admit, bench, decided } = createBench()
    bench.capacity = 0
    for (const name of ['a', 'b', 'c', 'd', 'e']) admit(name)
    expect(decided).toEqual(['e'])
    const byBytes = createBench()
    byBytes.bench.capacity = 0
    byBytes.admit('a', 900)
    byBytes.admit('b', 101)
    byBytes.admit('c', 100)
    expect(byBytes.decided).toEqual(['b'])
    expect(byBytes.admission.queued()).toEqual({ requests: 2, bytes: 1_000 })
    bench.capacity = 10
    admission.resume()
    expect(decided).toEqual(['e', 'a', 'b', 'c', 'd'])
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
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 12 }), (steps, ms) => {
      const bench = createBench({ decisionMs: ms, limits: { queuedRequestsMax: 1_000 } })
      let admitted = 0
      for (const one of steps) {
        const before = bench.decided.length
        if (one === 'admit') bench.admit(`r${admitted++}`)
        else if (one === 'resume') bench.admission.resume()
        else if (one === 'turn') bench.turn()
        else if (one === 'look') bench.look()
        else bench.bench.capacity = one === 'full' ? 0 : Number.POSITIVE_INFINITY
        expect((bench.decided.length - before) * ms).toBeLessThan(limits.scoringSliceMs + ms)
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
