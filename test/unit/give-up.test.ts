// The last resort of a scorer: of a message that fails again and again everything is done that can
// be, and the rest is put aside, counted and seen in the ledger.
import { describe, expect, it } from 'vitest'
import type { AlertDraft } from '#shared/core/alert-rules.ts'
import type { LedgerEntry } from '#shared/core/ledger.ts'
import { defaultPolicy } from '#shared/core/policy.ts'
import type { ConsumedMessage } from '#shared/io/consume.ts'
import type { DeadLetter } from '#shared/io/dead-letters.ts'
import type { KnownEvent } from '#shared/io/known-store.ts'
import type { DecideBatchDeps } from '../../services/scorer/decide-batch.ts'
import { createDecodedMessages } from '../../services/scorer/decoded-messages.ts'
import { giveUpDeciding, giveUpStoring } from '../../services/scorer/give-up.ts'
import type { ScorerObserver } from '../../services/scorer/observe.ts'
import { makeMessage, signalsOf } from '../support/accepted-events.ts'

const facts = ['one', 'odd', 'two'].map((deviceId) => ({ deviceId, signals: signalsOf.BLOCK }))
const message: ConsumedMessage = {
  data: makeMessage(facts),
  sequence: 7,
  streamCreatedMs: 1_000,
  deliveries: 5,
}

function createBench(fail: (event: KnownEvent) => void) {
  const raised: AlertDraft[] = []
  const entries: LedgerEntry[] = []
  const letters: DeadLetter[] = []
  const dropped: string[] = []
  const messages = createDecodedMessages(1_000_000)
  const observe = {
    timed: (_: string, work: Promise<unknown>) => work,
    existing: () => undefined,
    raised: () => undefined,
    retried: () => undefined,
    dropped: (some: readonly DeadLetter[]) => dropped.push(...some.map(({ reason }) => reason)),
  } as unknown as ScorerObserver
  const ledger = {
    insertEntries: async (some: readonly LedgerEntry[]) => {
      entries.push(...some)
    },
    insertDueAlerts: async () => undefined,
  }
  const findKnown = async (events: readonly KnownEvent[]) => {
    for (const event of events) fail(event)
    return events.map(() => ({
      counts: new Map(),
      details: new Map(),
      missing: null,
      retry: false,
    }))
  }
  const decide: DecideBatchDeps = {
    messages,
    observe,
    ledger,
    findKnown,
    findPolicy: async () => defaultPolicy,
    readDecidedFloor: async () => 6,
    findEarlierEvents: async () => [],
    findUnraised: async (drafts) => [...drafts],
    raiseAlerts: async (drafts) => {
      raised.push(...drafts)
      return { raised: [], existing: 0, strangers: [] } as never
    },
    publishHints: async () => undefined,
    shadow: { record: async () => undefined },
  }
  const deps = {
    messages,
    ledger,
    observe,
    decide,
    wallMs: () => 0,
    storeDeadLetters: async (some: readonly DeadLetter[]) => {
      letters.push(...some)
    },
  }
  return { deps, raised, entries, letters, dropped }
}

const defect = new TypeError('undefined is not a function')

describe('of a message that cannot be decided', () => {
  const failOdd = (event: KnownEvent) => {
    if (event.body.device_id === 'odd') throw defect
  }

  it('every event that can be is, and the rest is put aside and missing in the ledger', async () => {
    const { deps, raised, entries, letters, dropped } = createBench(failOdd)
    await giveUpDeciding(message, defect, deps)
    expect(raised.map(({ deviceId }) => deviceId)).toEqual(['one', 'two'])
    // One entry for the message: a second would replace it.
    expect(entries).toHaveLength(1)
    expect(entries[0]).toMatchObject({ stage: 'decided', events: 2, named: [] })
    expect(letters).toEqual([
      { reason: 'defect', detail: 'decide: TypeError', id: '7-decide', data: message.data },
    ])
    expect(dropped).toEqual(['defect'])
  })

  it('nothing is put aside when each of its events can be decided by itself', async () => {
    const { deps, raised, entries, letters } = createBench(() => undefined)
    await giveUpDeciding(message, defect, deps)
    expect(raised).toHaveLength(3)
    expect(entries).toMatchObject([{ events: 3 }])
    expect(letters).toEqual([])
  })

  it('nothing is given up in an outage', async () => {
    const { deps, letters, dropped } = createBench(() => {
      throw new Error('connect ECONNREFUSED')
    })
    await expect(giveUpDeciding(message, defect, deps)).rejects.toThrow('ECONNREFUSED')
    expect([letters, dropped]).toEqual([[], []])
  })
})

describe('a message that cannot be stored', () => {
  it('is put aside, its events refused', async () => {
    const { deps, entries, letters, dropped } = createBench(() => undefined)
    await giveUpStoring(message, defect, deps)
    expect(entries).toMatchObject([{ stage: 'stored', events: 3, refused: 3, named: [] }])
    expect(letters).toMatchObject([{ reason: 'defect', detail: 'store: TypeError', id: '7-store' }])
    expect(dropped).toEqual(['defect'])
  })

  it('is put aside also when it cannot be read, which is what is wrong with it', async () => {
    const { deps, entries, letters } = createBench(() => undefined)
    const decode = () => {
      throw defect
    }
    await giveUpStoring(message, defect, { ...deps, messages: { ...deps.messages, decode } })
    expect(entries).toMatchObject([{ tenantId: '', events: 0 }])
    expect(letters).toHaveLength(1)
  })
})
