// Quarantine by a scorer: of a message that always fails, every possible event is decided, and the
// rest is quarantined, counted and visible in reconciliation.
import { describe, expect, it } from 'vitest'
import { decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import type { DeadLetter } from '#shared/io/nats/dead-letters.ts'
import type { FeatureEvent } from '#shared/io/velocity/risk-features.ts'
import {
  quarantineUndecided,
  quarantineUnstored,
} from '../../../services/scorer/decide/quarantine.ts'
import { makeMessage, signalsOf } from '../../support/telemetry/accepted-events.ts'
import { makeDecideDeps } from '../../support/telemetry/decide-deps.ts'

const facts = ['one', 'odd', 'two'].map((deviceId) => ({ deviceId, signals: signalsOf.BLOCK }))
const message: ConsumedMessage = {
  data: makeMessage(facts),
  sequence: 7,
  proof: '',
  tracedEvents: '',
  streamOffset: 7_000,
  publishedMs: 1_000,
  deliveries: 5,
}

function createBench(fail: (event: FeatureEvent) => void) {
  const deadLetters: DeadLetter[] = []
  const dropped: string[] = []
  const logged: object[] = []
  const { decide, raised, entries } = makeDecideDeps({
    onKnown: (events) => events.forEach(fail),
    dropped: (some) => dropped.push(...some.map(({ reason }) => reason)),
  })
  const deps = {
    messages: decide.messages,
    reconciliation: decide.reconciliation,
    observe: decide.observe,
    decide,
    wallMs: () => 0,
    log: { error: (line: object) => void logged.push(line) },
    storeDeadLetters: async (some: readonly DeadLetter[]) => {
      deadLetters.push(...some)
    },
  }
  return { deps, raised, entries, deadLetters, dropped, logged }
}

const defect = new TypeError('undefined is not a function')

describe('a message that cannot be decided', () => {
  const failOdd = (event: FeatureEvent) => {
    if (event.body.device_id === 'odd') throw defect
  }

  it('is quarantined except its decidable events, and missing in reconciliation', async () => {
    const { deps, raised, entries, deadLetters, dropped, logged } = createBench(failOdd)
    await quarantineUndecided(message, defect, deps)
    expect(raised.map(({ deviceId }) => deviceId)).toEqual(['one', 'two'])
    // One entry per message: a second one would replace it.
    expect(entries).toHaveLength(1)
    expect(entries[0]).toMatchObject({ stage: 'decided', events: 2, named: [] })
    expect(deadLetters).toEqual([
      { reason: 'defect', detail: 'decide: TypeError', id: '7000-decide', data: message.data },
    ])
    expect(dropped).toEqual(['defect'])
    const odd = decodeBatch(message.data, 0).events[1]!
    expect(logged).toEqual([{ seq: 7, what: 'decide', event_ids: [odd.event_id] }])
  })

  it('is not quarantined when each of its events can be decided separately', async () => {
    const { deps, raised, entries, deadLetters } = createBench(() => undefined)
    await quarantineUndecided(message, defect, deps)
    expect(raised).toHaveLength(3)
    expect(entries).toMatchObject([{ events: 3 }])
    expect(deadLetters).toEqual([])
  })

  it('is not quarantined during an outage', async () => {
    const { deps, deadLetters, dropped } = createBench(() => {
      throw new Error('connect ECONNREFUSED')
    })
    await expect(quarantineUndecided(message, defect, deps)).rejects.toThrow('ECONNREFUSED')
    expect([deadLetters, dropped]).toEqual([[], []])
  })
})

describe('a message that cannot be stored', () => {
  it('is quarantined with its events as refused', async () => {
    const { deps, entries, deadLetters, dropped } = createBench(() => undefined)
    await quarantineUnstored(message, defect, deps)
    expect(entries).toMatchObject([{ stage: 'stored', events: 3, refused: 3, named: [] }])
    expect(deadLetters).toMatchObject([
      { reason: 'defect', detail: 'store: TypeError', id: '7000-store' },
    ])
    expect(dropped).toEqual(['defect'])
  })

  it('is quarantined even when it cannot be decoded, which is the fault', async () => {
    const { deps, entries, deadLetters } = createBench(() => undefined)
    const decodeToStore = () => {
      throw defect
    }
    await quarantineUnstored(message, defect, {
      ...deps,
      messages: { ...deps.messages, decodeToStore },
    })
    expect(entries).toMatchObject([{ tenantId: '', events: 0 }])
    expect(deadLetters).toHaveLength(1)
  })
})
