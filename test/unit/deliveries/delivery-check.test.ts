/**
 * The judge of the delivery drill: it must find what is wrong before it may say that all is well.
 */
import { describe, expect, it } from 'vitest'
import {
  type Breaches,
  checkDeliveries,
  type Evidence,
  type Kill,
} from '../../faults/deliveries/delivery-check.ts'
import type { SeenRequest } from '../../faults/deliveries/delivery-receiver.ts'

const failed = { attempt: 1, status: 500, errorKind: 'status' }
const delivered = { attempt: 2, status: 200, errorKind: null }
const row = {
  deliveryId: 'dlv_1',
  state: 'delivered',
  attempts: 2,
  sha256: 'bytes',
  records: [failed, delivered],
}
const see = (atMs: number, some: Partial<SeenRequest>): SeenRequest => ({
  place: atMs,
  deliveryId: 'dlv_1',
  attempt: 1,
  sha256: 'bytes',
  genuine: true,
  act: 'ok',
  reused: false,
  arrivedMs: atMs,
  endedMs: atMs,
  status: 200,
  complete: true,
  ...some,
})
const first = see(100, { act: '500', status: 500 })
const second = see(200, { attempt: 2 })
const kill = (sentMs: number, ...orphans: string[]): Kill => ({
  sentMs,
  settledMs: sentMs + 10,
  orphans: new Set(orphans),
})
const clean: Evidence = {
  raised: [{ alertId: 'alr_1', deliveryId: 'dlv_1' }],
  requests: [first, second],
  stored: [row],
  kills: [],
}
/** The names of the promises that were broken. */
const judge = (some: Partial<Evidence>): (keyof Breaches)[] => {
  const { breaches } = checkDeliveries({ ...clean, ...some })
  return (Object.keys(breaches) as (keyof Breaches)[]).filter((name) => breaches[name].length > 0)
}
const store = (some: Partial<typeof row>) => ({ stored: [{ ...row, ...some }] })

describe('the judge of deliveries', () => {
  it('finds nothing in a delivery that failed once and then arrived', () => {
    expect(judge({})).toEqual([])
  })

  it.each<[string, Partial<Evidence>, (keyof Breaches)[]]>([
    ['an alert without a delivery', { stored: [], requests: [] }, ['missing']],
    ['no 2xx', { requests: [first] }, ['missing', 'unfounded']],
    ['another end', store({ state: 'failed' }), ['undelivered']],
    ['other bytes', { requests: [first, { ...second, sha256: 'others' }] }, ['otherBytes']],
    ['a bad signature', { requests: [first, { ...second, genuine: false }] }, ['forged']],
    [
      'attempts out of order',
      { requests: [second, { ...first, arrivedMs: 300 }] },
      ['decreasing', 'afterSuccess'],
    ],
    ['a gap in the records', store({ records: [delivered] }), ['gaps']],
    ['a record of what was not sent', { requests: [second] }, ['unfounded']],
    [
      'a record of what was answered otherwise',
      { requests: [{ ...first, act: 'hang', status: null }, second] },
      ['unfounded'],
    ],
    [
      'a request without a record',
      { requests: [first, second, see(300, { attempt: 3 })] },
      ['unrecorded', 'afterSuccess'],
    ],
    ['a repeat', { requests: [first, { ...first, arrivedMs: 150 }, second] }, ['unexplained']],
    [
      'a repeat after a success',
      { requests: [first, second, see(300, { attempt: 2 })] },
      ['unexplained', 'afterSuccess'],
    ],
  ])('finds %s', (_, some, broken) => {
    expect(judge(some)).toEqual(broken)
  })

  it('excuses a repeat over a fresh connection after a used one ended without an answer', () => {
    const reset = see(100, { act: 'reset at body', status: null, complete: false, reused: true })
    const again = see(150, { act: '500', status: 500 })
    expect(judge({ requests: [reset, again, second] })).toEqual([])
    const fresh = { ...reset, reused: false }
    expect(judge({ requests: [fresh, again, second] })).toEqual(['unexplained'])
    const twice = { ...again, reused: true }
    expect(judge({ requests: [reset, twice, second] })).toEqual(['unexplained'])
  })

  it('excuses a repeat after a success by a kill in between that left it claimed, by no other', () => {
    const requests = [first, second, see(300, { attempt: 2 })]
    expect(judge({ requests, kills: [kill(250, 'dlv_1')] })).toEqual([])
    for (const other of [kill(250, 'dlv_2'), kill(150, 'dlv_1'), kill(350, 'dlv_1')]) {
      expect(judge({ requests, kills: [other] })).toEqual(['unexplained', 'afterSuccess'])
    }
    const findings = checkDeliveries({ ...clean, requests, kills: [kill(250, 'dlv_1')] })
    expect(findings).toMatchObject({ repeats: 1, repeatsAfterSuccess: 1, orphans: 1 })
  })

  it('goes by what the repeat met once a kill has undone a success', () => {
    const lost = see(50, {})
    expect(judge({ requests: [lost, first, second], kills: [kill(70, 'dlv_1')] })).toEqual([])
  })
})
