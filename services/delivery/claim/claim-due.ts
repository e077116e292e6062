/**
 * The loop between "something may be due" and a request in flight. Hints and sweeps only wake
 * lanes; whatever is due in a lane that is awake is claimed as far as there is room, lanes taking
 * turns. Claims follow one another at a distance, so that under load each brings many. First
 * tries, retries, probes and take-overs are this one path.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Lane } from '#shared/io/deliveries/delivery-claim-store.ts'
import type { DeliveryOutcome } from '#shared/io/deliveries/delivery-store.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { DeliveryMetrics } from '../metrics.ts'
import type { FreshClaim } from '../send/deliver-alert.ts'
import type { Recorder } from '../send/record-outcomes.ts'
import type { Slots } from './slots.ts'

export type Ask = Lane & { room: number }

export type ClaimLoop = {
  /** A delivery of this lane may be due. */
  wake: (lane: Lane) => void
  /** Claims nothing more. */
  stop: () => void
  /** Resolves when no delivery is in work, neither claimed nor in flight. */
  idle: () => Promise<void>
}

export type ClaimLoopDeps = {
  /** Claims at most what is asked for. */
  claim: (asks: readonly Ask[]) => Promise<FreshClaim[]>
  /** One attempt; never rejects. */
  deliver: (claimed: FreshClaim) => Promise<DeliveryOutcome>
  slots: Slots
  recorder: Pick<Recorder, 'add' | 'waiting'>
  monotonicMs: () => number
  log: Log
  metrics: DeliveryMetrics
}

/** Lanes in one claim: enough to fill every slot at the smallest room of a tenant. */
const asksMax = 64
/** Outcomes that may wait for Postgres before nothing more is claimed. */
const outcomesWaitingMax = 1_000
const pauseAfterFailureMs = 250
/**
 * From the beginning of one claim to the next, and to the next after one that brought many. A claim
 * costs Postgres half a millisecond whatever it brings; a hint that comes when nothing is going on
 * waits for none of this.
 */
const claimEveryMs = 5
const claimEveryUnderLoadMs = 8
const manyClaimed = 64

const keyOf = (lane: Lane) => `${lane.retry ? 'r' : 'f'} ${lane.tenantId}`

export function createClaimLoop(deps: ClaimLoopDeps): ClaimLoop {
  const { slots, recorder, log, metrics } = deps
  // In the order in which they take their turns.
  const awake = new Map<string, Lane>()
  let claiming = false
  let stopped = false
  let failing = false
  let working = 0
  let lastClaimMs = Number.NEGATIVE_INFINITY
  let lastClaimed = 0
  const idlers: (() => void)[] = []

  const wake = (lane: Lane): void => {
    const key = keyOf(lane)
    if (!awake.has(key)) awake.set(key, lane)
  }
  /**
   * Takes slots for as many lanes as there is room for; those lanes are asleep until they prove
   * full.
   */
  const takeTurns = (): Ask[] => {
    const asks: Ask[] = []
    for (const [key, lane] of awake) {
      if (asks.length === asksMax || slots.free() === 0) break
      const room = slots.take(lane, slots.free())
      if (room === 0) continue
      awake.delete(key)
      asks.push({ ...lane, room })
    }
    return asks
  }
  const work = async (claimed: FreshClaim, lane: Lane): Promise<void> => {
    const begunMs = deps.monotonicMs()
    const outcome = await deps.deliver(claimed)
    // Only a request says something about the receiver.
    if (outcome.attempt !== null) {
      const ok = outcome.next.state === 'delivered'
      slots.noteHeld(claimed.tenantId, deps.monotonicMs() - begunMs, ok)
    }
    slots.give(lane, 1)
    recorder.add(outcome)
    leave()
    void run()
  }
  const leave = (): void => {
    working -= 1
    if (working > 0) return
    for (const done of idlers.splice(0)) done()
  }
  const start = (asks: readonly Ask[], claimed: readonly FreshClaim[]): void => {
    const unused = new Map(asks.map((ask) => [keyOf(ask), { ...ask }]))
    for (const delivery of claimed) {
      const { tenantId } = delivery
      const lane: Lane = { tenantId, retry: delivery.attempts > 0 }
      // A probe may be of the lane that was not asked for: it sits in the slot of the other.
      const asked = unused.get(keyOf(lane)) ?? unused.get(keyOf({ ...lane, retry: !lane.retry }))
      if (asked !== undefined) asked.room -= 1
      lane.retry = asked?.retry ?? lane.retry
      working += 1
      void work(delivery, lane)
    }
    for (const lane of unused.values()) {
      // What filled its room may have more behind it.
      if (lane.room === 0) wake({ tenantId: lane.tenantId, retry: lane.retry })
      slots.give(lane, lane.room)
    }
  }
  const claimOnce = async (asks: readonly Ask[]): Promise<void> => {
    working += 1
    lastClaimMs = deps.monotonicMs()
    try {
      const claimed = await deps.claim(asks)
      lastClaimed = claimed.length
      start(asks, claimed)
      if (failing) log.info('deliveries can be claimed again')
      failing = false
    } catch (error) {
      metrics.claimFailures.inc()
      if (!failing) log.warn({ err: error }, 'deliveries cannot be claimed')
      failing = true
      for (const ask of asks) slots.give(ask, ask.room)
      for (const { tenantId, retry } of asks) wake({ tenantId, retry })
      await pause(pauseAfterFailureMs)
    } finally {
      leave()
    }
  }
  const run = async (): Promise<void> => {
    if (claiming) return
    claiming = true
    while (!stopped && recorder.waiting() < outcomesWaitingMax) {
      const everyMs = lastClaimed < manyClaimed ? claimEveryMs : claimEveryUnderLoadMs
      const earlyMs = lastClaimMs + everyMs - deps.monotonicMs()
      if (earlyMs > 0 && awake.size > 0) await pause(earlyMs)
      const asks = stopped ? [] : takeTurns()
      if (asks.length === 0) break
      await claimOnce(asks)
    }
    claiming = false
  }

  return {
    wake: (lane) => {
      wake(lane)
      void run()
    },
    stop: () => {
      stopped = true
    },
    idle: () =>
      working === 0 ? Promise.resolve() : new Promise((resolve) => idlers.push(resolve)),
  }
}
