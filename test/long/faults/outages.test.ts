/**
 * The whole service under load while nats-server hangs and is killed, and while Postgres and
 * ClickHouse are both down, for a moment each: the short form of `npm run faults -- outages`.
 */
import { expect, it } from 'vitest'
import {
  judgeFindings,
  judgeOutage,
  submissionsOf,
  unbounded,
} from '../../faults/outages/judge-outage.ts'
import { bothOf, type Outage, outages } from '../../faults/outages/outage-kinds.ts'
import { runOutages } from '../../faults/outages/run-outages.ts'
import { patientMs } from '../../support/process/until.ts'

const lastsMs = 4_000
const find = (wanted: string): Outage => {
  return { ...outages.find(({ name }) => name === wanted)!, lastsMs }
}

it('an outage of any server has documented effects, recovers and loses nothing', async () => {
  const hung = find('nats-hung')
  const chosen = [hung, bothOf(find('postgres-down'), find('clickhouse-down'), 200)]
  const result = await runOutages({
    outages: chosen,
    scale: 1,
    ratePerSecond: 60,
    calmMs: 500,
    readyWithinMs: patientMs,
    untilNoticed: true,
  })
  const { injected, findings, calls } = result
  expect(injected.map(({ outage }) => outage)).toEqual(chosen)
  expect(injected.flatMap((one) => judgeOutage(one, result, unbounded))).toEqual([])
  expect(judgeFindings(findings)).toEqual([])
  // The faults occurred, and so did the load.
  for (const one of injected) {
    const refused = submissionsOf(one, calls).filter(({ outcome }) => outcome === 'refused')
    expect(refused.length > 0).toBe(one.outage === hung)
    expect(submissionsOf(one, calls).length).toBeGreaterThan(50)
  }
  expect(findings.alerts).toBeGreaterThan(10)
  expect(calls.filter(({ kind }) => kind === 'again').length).toBeGreaterThan(0)
})
