// The consume loop on a real nats-server: handled messages are acknowledged, others are
// redelivered, and no outage, restart of the broker or bad message blocks the stream for long.
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  scorerConsumer,
  telemetryStream,
  telemetrySubject,
} from '#shared/core/telemetry/nats-names.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import {
  type ConsumedMessage,
  type ConsumeOptions,
  type Consumption,
  consume,
} from '#shared/io/nats/consume/consume.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { startStreamKeeper } from '#shared/io/nats/streams/stream-keeper.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import type { Poller } from '#shared/io/process/poll.ts'
import { until } from '../../support/process/until.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'

const log = createLog('test', 'silent')
const limits = {
  batchMessagesMax: 64,
  batchBytesMax: 1024 * 1024,
  batchIntervalMs: 0,
  batchIntervalMaxMs: 0,
}
type Handle = (messages: readonly ConsumedMessage[]) => Promise<void>

let server: TestNats
let nats: Nats
/** What the consumer under test has: the rights of a scorer, in another account. */
let scorer: Nats
let keeper: Poller
let metrics: Metrics
let consumptions: Consumption[]

beforeAll(async () => {
  server = await startNats()
  nats = await connectNats(server.url, 'test', log)
  scorer = await connectNats(server.urlOf('scorer'), 'scorer', log)
  const keeperMetrics = createMetrics('console')
  keeper = startStreamKeeper({ findNats: () => nats, log, metrics: keeperMetrics })
})
afterAll(async () => {
  await keeper?.stop()
  await scorer?.close()
  await nats?.close()
  await server?.stop()
})

beforeEach(async () => {
  await nats.manager.streams.delete(telemetryStream).catch(() => false)
  await ensureStreams(nats)
  consumptions = []
})
afterEach(async () => {
  for (const consumption of consumptions) await consumption.stop()
})

type More = Partial<
  Pick<ConsumeOptions, 'quarantine' | 'readyUpTo' | 'acknowledged' | 'retryInPlaceMaxMs'>
>

function begin(handle: Handle, some: Partial<typeof limits> = {}, more: More = {}): Consumption {
  metrics = createMetrics('test')
  const consumption = consume({
    nats: scorer,
    durable: scorerConsumer,
    handle,
    ...more,
    limits: { ...limits, ...some },
    log,
    metrics,
  })
  consumptions.push(consumption)
  return consumption
}

const publish = async (from: number, to: number) => {
  for (let n = from; n < to; n++) await nats.jetstream.publish(telemetrySubject, String(n))
}
const toNumber = (message: ConsumedMessage) => Number(Buffer.from(message.data).toString())
const range = (to: number) => Array.from({ length: to }, (_, n) => n)

async function isDrained(): Promise<boolean> {
  const { state } = await nats.manager.streams.info(telemetryStream)
  const info = await nats.manager.consumers.info(telemetryStream, scorerConsumer)
  return info.ack_floor.stream_seq === state.last_seq
}

async function readMetric(name: string, ofMetrics = metrics): Promise<number> {
  const values = (await ofMetrics.registry.getSingleMetric(name)?.get())?.values ?? []
  return values.reduce((sum, { value }) => sum + value, 0)
}

/** The number of delivered, unacknowledged messages, and that of undelivered ones. */
async function readCounts(): Promise<{ held: number; waiting: number }> {
  const info = await nats.manager.consumers.info(telemetryStream, scorerConsumer)
  return { held: info.num_ack_pending, waiting: info.num_pending }
}

function toBeFinished(): { finish: () => void; finished: Promise<void> } {
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
  return { finish, finished }
}

describe('a consumer', () => {
  it('handles every message once and in order, and acknowledges all of them', async () => {
    const seen: number[] = []
    begin(async (messages) => {
      seen.push(...messages.map(toNumber))
    })
    await publish(0, 500)
    await until('everything is acknowledged', isDrained)
    expect(seen).toEqual(range(500))
    expect(await readMetric('di_consume_messages_total')).toBe(500)
    expect(await readMetric('di_consume_redelivered_total')).toBe(0)
  })

  it('acknowledges nothing before its handler has finished', async () => {
    const { finish, finished } = toBeFinished()
    let begun = 0
    begin(async (messages) => {
      begun += messages.length
      await finished
    })
    await publish(0, 3)
    await until('a batch is in hand', () => begun > 0)
    const info = await nats.manager.consumers.info(telemetryStream, scorerConsumer)
    expect(info.ack_floor.stream_seq).toBe(0)
    finish()
    await until('everything is acknowledged', isDrained)
  })

  it('makes batches larger the more messages wait, and never larger than its limits', async () => {
    await publish(0, 300)
    const sizes: number[] = []
    begin(async (messages) => {
      sizes.push(messages.length)
      await pause(5)
    })
    await until('everything is acknowledged', isDrained)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(limits.batchMessagesMax)
    expect(sizes.length).toBeLessThan(20)
    expect(sizes.reduce((a, b) => a + b)).toBe(300)
  })

  it('also bounds a batch by bytes, yet accepts a single larger message', async () => {
    const large = 'x'.repeat(700 * 1024)
    for (let n = 0; n < 5; n++) await nats.jetstream.publish(telemetrySubject, large)
    const sizes: number[] = []
    begin(
      async (messages) => {
        sizes.push(messages.length)
      },
      { batchBytesMax: 512 * 1024 },
    )
    await until('everything is acknowledged', isDrained)
    expect(sizes).toEqual([1, 1, 1, 1, 1])
  })

  it('lingers while there are few messages, so that inserts stay few', async () => {
    const begun: number[] = []
    begin(
      async () => {
        begun.push(performance.now())
      },
      { batchIntervalMs: 150, batchIntervalMaxMs: 150 },
    )
    for (let n = 0; n < 30; n++) {
      await publish(n, n + 1)
      await pause(10)
    }
    await until('everything is acknowledged', isDrained)
    const gaps = begun.slice(1).map((at, index) => at - begun[index]!)
    expect(gaps.length).toBeGreaterThan(0)
    for (const gap of gaps) expect(gap).toBeGreaterThan(140)
  })

  it('leaves messages without a place in a batch at the broker', async () => {
    const { finish, finished } = toBeFinished()
    let isInHand = false
    begin(async () => {
      isInHand = true
      await finished
    })
    await publish(0, 1)
    await until('a batch is in hand', () => isInHand)
    await publish(1, 60)
    await pause(300)
    expect(await readCounts()).toEqual({ held: 1, waiting: 59 })
    finish()
    await until('everything is acknowledged', isDrained)
  })

  it('fetches one more batch while a full one is in progress, and no more than that', async () => {
    const { finish, finished } = toBeFinished()
    await publish(0, 60)
    begin(async () => finished, { batchMessagesMax: 20 })
    await until('the next is taken', async () => (await readCounts()).held > 20)
    await pause(300)
    expect(await readCounts()).toEqual({ held: 40, waiting: 20 })
    finish()
    await until('everything is acknowledged', isDrained)
  })

  it('pauses as long as a batch took, up to a limit, to spare a busy store', async () => {
    const begun: number[] = []
    const tookMs = 100
    const gapsWithin = async (batchIntervalMaxMs: number) => {
      begun.length = 0
      const consumption = begin(
        async () => {
          begun.push(performance.now())
          await pause(tookMs)
        },
        { batchIntervalMaxMs },
      )
      for (let n = 0; begun.length < 6; n++) {
        await publish(n, n + 1)
        await pause(10)
      }
      await consumption.stop()
      return begun.slice(1).map((at, index) => at - begun[index]!)
    }
    expect(Math.min(...(await gapsWithin(1_000)))).toBeGreaterThan(2 * tookMs - 10)
    expect(Math.min(...(await gapsWithin(tookMs + 20)))).toBeLessThan(2 * tookMs - 10)
  })

  it('keeps its messages during an outage', async () => {
    let away = true
    const seen: number[] = []
    let tries = 0
    const consumption = begin(async (messages) => {
      tries++
      if (away) throw new Error('the database is away')
      seen.push(...messages.map(toNumber))
    })
    await publish(0, 50)
    await until('it has been tried a few times', () => tries > 3)
    expect(await isDrained()).toBe(false)
    expect(consumption.fault()).toBe('messages cannot be handled')
    away = false
    await until('everything is acknowledged', isDrained)
    expect(consumption.fault()).toBeNull()
    expect(new Set(seen)).toEqual(new Set(range(50)))
    expect(await readMetric('di_consume_failures_total')).toBeGreaterThan(2)
    expect(await readMetric('di_consume_nacked_total')).toBe(0)
  })

  it('has no fault any more when nothing has failed for a while, handled or not', async () => {
    let away = true
    const { finish, finished } = toBeFinished()
    let tries = 0
    const consumption = begin(async () => {
      tries++
      if (away) throw new Error('the database is away')
      await finished
    })
    await publish(0, 1)
    await until('it has been tried a few times', () => tries > 3)
    for (const startedMs = performance.now(); performance.now() - startedMs < 2_700; ) {
      expect(consumption.fault()).toBe('messages cannot be handled')
      await pause(20)
    }
    away = false
    await until('it is well', () => consumption.fault() === null)
    expect(await isDrained()).toBe(false)
    finish()
    await until('everything is acknowledged', isDrained)
    expect(consumption.fault()).toBeNull()
  })

  it('has no fault any more while a redelivered message waits for others', async () => {
    let readyUpTo = 1
    let away = true
    let tries = 0
    const consumption = begin(
      async () => {
        tries++
        if (away) throw new Error('the database is away')
      },
      {},
      { retryInPlaceMaxMs: 300, readyUpTo: async () => readyUpTo },
    )
    await publish(0, 1)
    await until('it has been given back', async () => {
      return (await readMetric('di_consume_nacked_total')) > 0
    })
    // The stored offset limits what may be decided, and is behind after an outage.
    readyUpTo = 0
    expect(consumption.fault()).toBe('messages cannot be handled')
    const triesBefore = tries
    await until('it is well', () => consumption.fault() === null)
    expect(tries).toBe(triesBefore)
    away = false
    readyUpTo = 1
    await until('everything is acknowledged', isDrained)
    expect(consumption.fault()).toBeNull()
  })

  it('isolates and quarantines a message that hits a defect; others are handled', async () => {
    const seen: number[] = []
    const quarantined: ConsumedMessage[] = []
    let refusals = 1
    let failedTogether = 0
    const handle: Handle = async (messages) => {
      // Long enough that later messages, including a redelivered one, form the next batch.
      await pause(200)
      if (messages.some((message) => toNumber(message) === 7)) {
        if (messages.length > 1) failedTogether++
        throw new TypeError('undefined is not a function')
      }
      seen.push(...messages.map(toNumber))
    }
    const quarantine = async (message: ConsumedMessage, error: unknown) => {
      if (refusals-- > 0) throw new Error('there is no room for it')
      expect(error).toBeInstanceOf(TypeError)
      quarantined.push(message)
    }
    begin(handle, {}, { quarantine })
    await publish(0, 20)
    await until('all neighbours are handled', () => new Set(seen).size === 19)
    let next = 20
    await until('it is given up, others being handled meanwhile', async () => {
      next += 40
      await publish(next - 40, next)
      return quarantined.length > 0
    })
    await until('everything is acknowledged', isDrained)
    expect(seen).not.toContain(7)
    // Once it is identified, it is kept apart from the others.
    expect(failedTogether).toBeLessThanOrEqual(1)
    expect(quarantined.map(toNumber)).toEqual([7])
    expect(quarantined[0]!.deliveries).toBeGreaterThanOrEqual(4)
    expect(await readMetric('di_consume_quarantined_total')).toBe(1)
  })

  it('gives all messages back once the store is away, also those that it tries one by one', async () => {
    const alone = new Set<number>()
    const handle: Handle = async (messages) => {
      if (messages.length > 1) throw new TypeError('undefined is not a function')
      alone.add(toNumber(messages[0]!))
      throw new Error('the store is away')
    }
    begin(handle, {}, { retryInPlaceMaxMs: 300 })
    await publish(0, 20)
    await until('all are given back', async () => {
      return (await readMetric('di_consume_nacked_total')) >= 20
    })
    // One of each batch that the messages came in.
    expect(alone.size).toBeLessThan(10)
  })

  it('quarantines nothing while every message fails: a later release may handle them', async () => {
    const tries = new Map<number, number>()
    const quarantined: number[] = []
    const quarantine = async (message: ConsumedMessage) => {
      quarantined.push(toNumber(message))
    }
    let broken = true
    begin(
      async (messages) => {
        for (const message of messages) {
          tries.set(toNumber(message), message.deliveries)
          if (broken) throw new ReferenceError('released by mistake')
        }
      },
      {},
      { quarantine },
    )
    await publish(0, 5)
    await until('all were tried often', () => [...tries.values()].every((n) => n >= 4))
    expect(quarantined).toEqual([])
    broken = false
    await until('everything is acknowledged', isDrained)
    expect(quarantined).toEqual([])
  })

  it('handles nothing beyond the ready offset, and continues when it advances', async () => {
    const seen: number[] = []
    let ready = 0
    let queries = 0
    const consumption = begin(
      async (messages) => {
        for (const message of messages) {
          expect(message.sequence).toBeLessThanOrEqual(ready)
          seen.push(message.sequence)
        }
      },
      {},
      {
        readyUpTo: async () => {
          if (++queries % 5 === 0) throw new Error('the broker does not answer')
          return ready
        },
      },
    )
    await publish(0, 30)
    await until('it has queried', () => queries > 5)
    expect(seen).toEqual([])
    ready = 12
    consumption.wake()
    await until('the first are handled', () => seen.length === 12)
    await until('it has queried again', () => queries > 15)
    expect(seen).toEqual(range(12).map((n) => n + 1))
    ready = 30
    await until('everything is acknowledged', isDrained)
    expect(seen).toEqual(range(30).map((n) => n + 1))
  })

  it('shares the messages among several processes, each message to one of them', async () => {
    const seen: number[][] = [[], [], []]
    for (const mine of seen) {
      begin(
        async (messages) => {
          mine.push(...messages.map(toNumber))
          await pause(2)
        },
        { batchMessagesMax: 8 },
      )
    }
    await publish(0, 400)
    await until('everything is acknowledged', isDrained)
    expect(seen.flat().sort((a, b) => a - b)).toEqual(range(400))
    for (const mine of seen) expect(mine.length).toBeGreaterThan(0)
  })

  it('releases unstarted messages at once when it stops', async () => {
    const { finish, finished } = toBeFinished()
    const first: number[] = []
    const stopped = begin(
      async (messages) => {
        await finished
        first.push(...messages.map(toNumber))
      },
      { batchMessagesMax: 5 },
    )
    await publish(0, 40)
    await until(
      'a batch is in hand',
      async () => (await readMetric('di_consume_batches_total')) > 0,
    )
    const stopping = stopped.stop()
    finish()
    await stopping
    const second: number[] = []
    const startedMs = performance.now()
    begin(async (messages) => {
      second.push(...messages.map(toNumber))
    })
    await until('everything is acknowledged', isDrained)
    // Less than the ack wait of 30 s: no message had to time out.
    expect(performance.now() - startedMs).toBeLessThan(29_000)
    expect(first.length).toBeGreaterThan(0)
    expect([...first, ...second].sort((a, b) => a - b)).toEqual(range(40))
  })

  it('reports its lag', async () => {
    let away = true
    await publish(0, 10)
    begin(async () => {
      if (away) throw new Error('the database is away')
    })
    await until('it sees what it holds', async () => {
      return (await readMetric('di_consume_unacknowledged')) === 10
    })
    expect(await readMetric('di_consume_oldest_seconds')).toBeGreaterThan(0)
    away = false
    await until('it has caught up', async () => {
      return (await readMetric('di_consume_unacknowledged')) === 0
    })
    expect(await readMetric('di_consume_oldest_seconds')).toBe(0)
  })
})

describe('a consumer whose broker fails', () => {
  it('continues after its consumer was deleted', async () => {
    const seen = new Set<number>()
    const consumption = begin(async (messages) => {
      for (const message of messages) seen.add(toNumber(message))
    })
    await publish(0, 5)
    await until('it works', () => seen.size === 5)
    await nats.manager.consumers.delete(telemetryStream, scorerConsumer)
    await publish(5, 10)
    await until('it works again', () => seen.size === 10)
    expect(consumption.fault()).toBeNull()
  })

  it('continues after the stream was lost with all its messages', async () => {
    const seen = new Set<number>()
    begin(async (messages) => {
      for (const message of messages) seen.add(toNumber(message))
    })
    await publish(0, 5)
    await until('it works', () => seen.size === 5)
    await nats.manager.streams.delete(telemetryStream)
    await until('the stream is back', async () => {
      await nats.manager.streams.info(telemetryStream)
      return true
    })
    await publish(5, 10)
    await until('it works again', () => seen.size === 10)
  })

  it('does not wait for the watermark of a lost stream', async () => {
    const seen = new Set<number>()
    let ready = 4
    begin(
      async (messages) => {
        for (const message of messages) seen.add(toNumber(message))
      },
      {},
      { readyUpTo: async () => ready },
    )
    await publish(0, 5)
    await until('it waits with the last one', async () => {
      const { held, waiting } = await readCounts()
      return seen.size === 4 && held === 1 && waiting === 0
    })
    await nats.manager.streams.delete(telemetryStream)
    await ensureStreams(nats)
    await server.restart()
    await until('NATS is connected', nats.connected)
    ready = 3
    await publish(5, 8)
    await until('everything is handled', () => seen.size === 8)
  })

  it('loses nothing when the broker is killed and started again repeatedly', async () => {
    const seen = new Set<number>()
    begin(async (messages) => {
      await pause(3)
      for (const message of messages) seen.add(toNumber(message))
    })
    let published = 0
    for (let round = 0; round < 3; round++) {
      const before = published
      while (published < before + 150) {
        await nats.jetstream.publish(telemetrySubject, String(published))
        published++
      }
      await server.kill('SIGKILL')
      await server.restart()
      await until('the connection is back', () => nats.connected())
    }
    // Messages in transit when the broker died are redelivered after the ack wait at the latest.
    await until('everything was seen', () => seen.size === published)
    expect(await readMetric('di_consume_fetch_failures_total')).toBe(0)
  })

  it.each(['SIGCONT', 'SIGKILL'] as const)(
    'fetches new messages as soon as a broker that hung is back, after %s',
    async (signal) => {
      const seen = new Set<number>()
      const consumption = begin(async (messages) => {
        for (const message of messages) seen.add(toNumber(message))
      })
      await publish(0, 5)
      await until('it works', () => seen.size === 5)
      await server.kill('SIGSTOP')
      // Two heartbeats were missing, and the query after that got no answer either.
      await pause(6_000)
      await server.kill(signal)
      if (signal === 'SIGKILL') await server.restart()
      await until('the connection is back', () => nats.connected())
      await publish(5, 10)
      await until('it works again', () => seen.size === 10, 2_500)
      expect(consumption.fault()).toBeNull()
      // A fetch that was on its way while the broker hung may have failed.
      expect(await readMetric('di_consume_fetch_failures_total')).toBeLessThanOrEqual(1)
    },
  )
})
