/** Group commit by examples; `faults/machines/group-commit.ts` has its races against a model. */
import { describe, expect, it } from 'vitest'
import {
  type CommitLimits,
  createGroupCommit,
  encodeBatch,
  toWaiterBytes,
  type Waiter,
} from '../../../services/ingest/group-commit.ts'

type Named = Waiter & { name: string }

const limits: CommitLimits = {
  batchEventsMax: 4,
  batchBytesMax: 400,
  publishesInFlightMax: 2,
  lingerMs: 0,
  lingerUntilEvents: 4,
  waitingEventsMax: 12,
  waitingBytesMax: 2_000,
  publishTimeoutMs: 2_000,
  publishAttemptMs: 700,
}

type Publish = { message: string; batchId: string; timeoutMs: number }

/** A group commit with its own clock, and a record of everything it did. */
function createBench(options: {
  publish: (publish: Publish, bench: Bench) => Promise<{ duplicate: boolean }>
  limits?: Partial<CommitLimits>
  defer?: (run: () => void) => void
  /** The event whose settlement throws. */
  throwsFor?: string
  /** How far the clock moves each time it is read. */
  tickMs?: number
}) {
  const settled: { name: string; fault: string | null }[] = []
  const publishes: Publish[] = []
  const retried: string[] = []
  const failed: { events: number; fault: string }[] = []
  const stored: { events: number; duplicate: boolean }[] = []
  const later: { run: () => void; ms: number }[] = []
  const unsettled: string[] = []
  const capacityAt: number[] = []
  let ids = 0
  const bench: Bench = { nowMs: 0, settled, publishes, retried, failed, stored }
  const commit = createGroupCommit<Named>({
    publish: async (message, batchId, timeoutMs) => {
      const publish = { message: Buffer.from(message).toString(), batchId, timeoutMs }
      publishes.push(publish)
      return { sequence: publishes.length, ...(await options.publish(publish, bench)) }
    },
    settle: ({ name }, { fault }) => {
      if (name === options.throwsFor) throw new Error(`no response for ${name}`)
      settled.push({ name, fault })
    },
    onSettleFailed: ({ name }, error) => unsettled.push(`${name}: ${(error as Error).message}`),
    onSettled: () => capacityAt.push(settled.length),
    defer: options.defer ?? queueMicrotask,
    later: (run, ms) => later.push({ run, ms }),
    pause: async (ms) => {
      bench.nowMs += ms
    },
    newBatchId: () => `batch-${++ids}`,
    nowMs: () => {
      bench.nowMs += options.tickMs ?? 0
      return bench.nowMs
    },
    limits: { ...limits, ...options.limits },
    observe: {
      stored: ({ events, duplicate }) => stored.push({ events, duplicate }),
      retried: (fault) => retried.push(fault),
      failed: (batch) => failed.push(batch),
    },
  })
  const offer = (name: string, size = 10) => commit.offer(toWaiter(name, size, bench.nowMs))
  return { ...bench, bench, commit, offer, later, capacityAt, unsettled }
}

type Bench = {
  nowMs: number
  settled: { name: string; fault: string | null }[]
  publishes: Publish[]
  retried: string[]
  failed: { events: number; fault: string }[]
  stored: { events: number; duplicate: boolean }[]
}

function toWaiter(name: string, size: number, arrivedMs: number): Named {
  const head = `{"name":"${name}","body":`
  const body = Buffer.from(JSON.stringify('x'.repeat(size)))
  return { name, head, body, bytes: toWaiterBytes(head, body), arrivedMs }
}

const namesIn = (message: string) =>
  (JSON.parse(message) as { name: string }[]).map(({ name }) => name)

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A publish that the test resolves or rejects by hand. */
function createHand() {
  const open: { resolve: () => void; reject: (error: Error) => void }[] = []
  const publish = () =>
    new Promise<{ duplicate: boolean }>((resolve, reject) => {
      open.push({ resolve: () => resolve({ duplicate: false }), reject })
    })
  return { publish, open }
}

describe('batching', () => {
  it('publishes at once when idle, and later events in one message', async () => {
    const hand = createHand()
    const { offer, publishes, settled } = createBench({
      publish: hand.publish,
      limits: { publishesInFlightMax: 1 },
    })
    offer('a')
    await turn()
    offer('b')
    offer('c')
    await turn()
    expect(publishes.map(({ message }) => namesIn(message))).toEqual([['a']])
    hand.open[0]!.resolve()
    await turn()
    expect(settled).toEqual([{ name: 'a', fault: null }])
    expect(publishes.map(({ message }) => namesIn(message))).toEqual([['a'], ['b', 'c']])
    hand.open[1]!.resolve()
    await turn()
    expect(settled.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  })

  it('puts the events of one turn of the event loop into one message', async () => {
    const { offer, publishes } = createBench({ publish: async () => ({ duplicate: false }) })
    for (const name of ['a', 'b', 'c']) offer(name)
    await turn()
    expect(publishes.map(({ message }) => namesIn(message))).toEqual([['a', 'b', 'c']])
  })

  it('bounds a message in events and bytes, and still sends a single large event', async () => {
    const { offer, publishes } = createBench({ publish: async () => ({ duplicate: false }) })
    for (const name of ['a', 'b', 'c', 'd', 'e']) offer(name)
    offer('f', 390)
    offer('g', 900)
    offer('h')
    await turn()
    expect(publishes.map(({ message }) => namesIn(message))).toEqual([
      ['a', 'b', 'c', 'd'],
      ['e'],
      ['f'],
      ['g'],
      ['h'],
    ])
  })

  it('writes a message as one JSON array around unchanged bodies', () => {
    const bodies = ['{"a" : 1.0}', '{"ü":"\\u00e4 😀"}', '[ ]']
    const waiters = bodies.map((text, index) => {
      const head = `{"index":${index},"ä":"${index}","body":`
      const body = Buffer.from(text)
      return { head, body, bytes: toWaiterBytes(head, body), arrivedMs: 0 }
    })
    const message = encodeBatch(waiters)
    const heads = waiters.map(({ head }, index) => `${head}${bodies[index]}}`)
    expect(Buffer.from(message).toString()).toBe(`[${heads.join(',')}]`)
    expect(JSON.parse(Buffer.from(message).toString())).toHaveLength(3)
  })
})

describe('refusing', () => {
  it('refuses an event beyond the waiting events or bytes, without an effect', async () => {
    const hand = createHand()
    const byEvents = createBench({ publish: hand.publish, limits: { waitingEventsMax: 2 } })
    expect(['a', 'b', 'c'].map((name) => byEvents.offer(name))).toEqual([true, true, false])
    const byBytes = createBench({ publish: hand.publish, limits: { waitingBytesMax: 100 } })
    expect(byEvents.commit.hasCapacity()).toBe(false)
    expect(byBytes.offer('a')).toBe(true)
    expect(byBytes.commit.hasCapacity()).toBe(true)
    // The last one may be larger than the remaining bytes.
    expect(byBytes.offer('b', 200)).toBe(true)
    expect(byBytes.commit.hasCapacity()).toBe(false)
    expect(byBytes.offer('c')).toBe(false)
    expect(byBytes.commit.waiting().events).toBe(2)
  })

  it('accepts again once there is capacity', async () => {
    const hand = createHand()
    const { offer, commit, capacityAt } = createBench({
      publish: hand.publish,
      limits: { waitingEventsMax: 2 },
    })
    expect([offer('a'), offer('b')]).toEqual([true, true])
    await turn()
    expect(offer('c')).toBe(false)
    expect(capacityAt).toEqual([])
    hand.open[0]!.resolve()
    await commit.drained()
    // Called once per message, when all of it is settled.
    expect(capacityAt).toEqual([2])
    expect(commit.hasCapacity()).toBe(true)
    expect(offer('c')).toBe(true)
  })
})

it('an event whose settlement throws holds back no other one', async () => {
  const { offer, commit, settled, unsettled, capacityAt } = createBench({
    publish: async () => ({ duplicate: false }),
    throwsFor: 'b',
  })
  for (const name of ['a', 'b', 'c']) offer(name)
  await commit.drained()
  expect(settled.map(({ name }) => name)).toEqual(['a', 'c'])
  expect(unsettled).toEqual(['b: no response for b'])
  expect(commit.waiting()).toEqual({ events: 0, bytes: 0 })
  expect(capacityAt).toEqual([2])
})

describe('a failed publish', () => {
  it('is repeated with the same bytes and id until they are stored', async () => {
    let tries = 0
    const { offer, publishes, settled, retried, stored } = createBench({
      publish: async ({ timeoutMs }, bench) => {
        bench.nowMs += timeoutMs
        tries++
        if (tries < 3) throw new Error('no acknowledgement')
        return { duplicate: true }
      },
      limits: { publishTimeoutMs: 5_000 },
    })
    offer('a')
    offer('b')
    await turn()
    expect(settled).toEqual([
      { name: 'a', fault: null },
      { name: 'b', fault: null },
    ])
    expect(publishes).toHaveLength(3)
    expect(new Set(publishes.map(({ batchId }) => batchId)).size).toBe(1)
    expect(new Set(publishes.map(({ message }) => message)).size).toBe(1)
    expect(retried).toEqual(['no_ack', 'no_ack'])
    expect(stored).toEqual([{ events: 2, duplicate: true }])
  })

  it('ends in time, and every event of it is settled as not stored', async () => {
    const { offer, settled, failed, bench, publishes } = createBench({
      publish: async ({ timeoutMs }, bench) => {
        bench.nowMs += timeoutMs
        throw Object.assign(new Error('slow'), { fault: 'no_ack' })
      },
    })
    offer('a')
    offer('b')
    await turn()
    expect(settled).toEqual([
      { name: 'a', fault: 'no_ack' },
      { name: 'b', fault: 'no_ack' },
    ])
    expect(failed).toEqual([{ events: 2, fault: 'no_ack' }])
    expect(bench.nowMs).toBe(limits.publishTimeoutMs)
    expect(publishes.map(({ timeoutMs }) => timeoutMs)).toEqual([700, 700, 600])
  })

  it('leaves each event its own time: a late one is stored after an early one was refused', async () => {
    const { offer, commit, settled, stored, failed, bench, publishes } = createBench({
      publish: async ({ timeoutMs }, bench) => {
        if (bench.nowMs >= limits.publishTimeoutMs) return { duplicate: true }
        bench.nowMs += timeoutMs
        throw Object.assign(new Error('slow'), { fault: 'no_ack' })
      },
    })
    commit.offer(toWaiter('early', 10, 0))
    commit.offer(toWaiter('with it', 10, 20))
    bench.nowMs = 1_500
    offer('late')
    await turn()
    expect(settled).toEqual([
      { name: 'early', fault: 'no_ack' },
      { name: 'with it', fault: 'no_ack' },
      { name: 'late', fault: null },
    ])
    expect(publishes.map(({ timeoutMs }) => timeoutMs)).toEqual([500, 700])
    expect(new Set(publishes.map(({ message }) => message)).size).toBe(1)
    expect(failed).toEqual([{ events: 2, fault: 'no_ack' }])
    expect(stored).toEqual([{ events: 3, duplicate: true }])
    expect(commit.waiting()).toEqual({ events: 0, bytes: 0 })
  })

  it('is given a time that is not over already, however near the deadline is', async () => {
    const { offer, settled, publishes } = createBench({
      publish: async (_, bench) => {
        // The deadline passes between two looks at the clock.
        bench.nowMs = Math.max(bench.nowMs, limits.publishTimeoutMs - 0.35)
        throw Object.assign(new Error('slow'), { fault: 'no_ack' })
      },
      tickMs: 0.1,
    })
    offer('a')
    await turn()
    expect(settled).toEqual([{ name: 'a', fault: 'no_ack' }])
    expect(publishes.length).toBeGreaterThan(1)
    expect(publishes.filter(({ timeoutMs }) => timeoutMs < 1)).toEqual([])
  })

  it('is not repeated in a tight loop when the broker fails at once', async () => {
    const { offer, publishes, bench } = createBench({
      publish: async () => {
        throw new Error('no responders')
      },
    })
    offer('a')
    await turn()
    expect(bench.nowMs).toBe(limits.publishTimeoutMs)
    expect(publishes.length).toBeLessThanOrEqual(limits.publishTimeoutMs / 50)
  })

  it('settles its events at once when the rejection is final', async () => {
    const { offer, settled, publishes, bench } = createBench({
      publish: async () => {
        throw Object.assign(new Error('full'), { fault: 'stream_full', final: true })
      },
    })
    offer('a')
    await turn()
    expect(settled).toEqual([{ name: 'a', fault: 'stream_full' }])
    expect(publishes).toHaveLength(1)
    expect(bench.nowMs).toBe(0)
  })

  it('omits events that have waited for too long, and settles them', async () => {
    const hand = createHand()
    const { offer, settled, bench, publishes } = createBench({
      publish: hand.publish,
      limits: { publishesInFlightMax: 1 },
    })
    offer('a')
    await turn()
    offer('b')
    bench.nowMs = limits.publishTimeoutMs
    hand.open[0]!.resolve()
    await turn()
    expect(settled).toEqual([
      { name: 'b', fault: 'no_ack' },
      { name: 'a', fault: null },
    ])
    expect(publishes).toHaveLength(1)
  })
})

it('drained resolves at once when nothing waits', async () => {
  const { commit } = createBench({ publish: async () => ({ duplicate: false }) })
  const first = await Promise.race([
    commit.drained().then(() => 'drained'),
    new Promise((resolve) => setImmediate(resolve, 'later')),
  ])
  expect(first).toBe('drained')
})

describe('lingering', () => {
  const limits = { lingerMs: 5, lingerUntilEvents: 3, batchEventsMax: 100 }
  const run = () => {
    const acks: (() => void)[] = []
    const publish = () =>
      new Promise<{ duplicate: boolean }>((resolve) => {
        acks.push(() => resolve({ duplicate: false }))
      })
    const bench = createBench({ publish, limits })
    const settle = async () => {
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    }
    const take = async (...names: string[]) => {
      for (const name of names) bench.offer(name)
      await settle()
    }
    return { ...bench, acks, settle, take }
  }

  it('waits while more events are unsettled than the message holds, up to its limit', async () => {
    const { take, settle, publishes, later, bench } = run()
    await take('a', 'b', 'c', 'd')
    bench.nowMs = 2
    await take('e')
    expect(publishes).toHaveLength(1)
    expect(later.map(({ ms }) => ms)).toEqual([3])
    bench.nowMs = 5
    later[0]!.run()
    await settle()
    expect(publishes).toHaveLength(2)
    expect(publishes[1]!.message).toContain('"e"')
  })

  it('ends at once with enough events in the message; its timer does nothing', async () => {
    const { take, settle, publishes, later, bench } = run()
    await take('a', 'b', 'c', 'd')
    bench.nowMs = 1
    await take('e')
    await take('f', 'g')
    expect(publishes).toHaveLength(2)
    expect(publishes[1]!.message).toMatch(/"e".*"f".*"g"/)
    bench.nowMs = 5
    later[0]!.run()
    await settle()
    expect(publishes).toHaveLength(2)
  })

  it('is half as long for a message with some events, up to half of the unsettled', async () => {
    const { take, settle, publishes, later, bench } = run()
    await take('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')
    bench.nowMs = 1
    await take('i')
    await take('j', 'k')
    expect(publishes).toHaveLength(1)
    expect(later.map(({ ms }) => ms)).toEqual([4, 1.5])
    bench.nowMs = 2.5
    later[1]!.run()
    await settle()
    expect(publishes).toHaveLength(2)
    expect(publishes[1]!.message).toMatch(/"i".*"j".*"k"/)
  })

  it('ends once the message has as many events as were unsettled at any time', async () => {
    const { take, publishes, later, acks, settle, bench } = run()
    await take('a')
    await take('b')
    expect(publishes).toHaveLength(2)
    acks[0]!()
    await settle()
    bench.nowMs = 1
    await take('c')
    expect(publishes).toHaveLength(2)
    acks[1]!()
    await settle()
    await take('d')
    expect(publishes).toHaveLength(3)
    expect(publishes[2]!.message).toMatch(/"c".*"d"/)
    expect(later.map(({ ms }) => ms)).toEqual([4])
  })
})
