// A short run of the isolation drill: three tenants with the same ids never see each other's data.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type IsolationRig, startIsolationRig } from '../../faults/isolation/rig.ts'
import { drillIsolation, type IsolationResult } from '../../faults/isolation/run-isolation.ts'
import { seed } from '../../support/process/seed.ts'

let rig: IsolationRig
let result: IsolationResult

beforeAll(async () => {
  rig = await startIsolationRig(seed, 3)
  result = await drillIsolation(rig, { calls: 200, seed })
})
afterAll(() => rig?.close())

const sum = (of: 'foreign' | 'probes' | 'leaks' | 'wrong' | 'rows') =>
  [...result.routes.values()].reduce((all, one) => all + one[of], 0)
const about = () => `SEED=${seed} ${result.examples.join('\n')}`

it('no answer contains data of another tenant with the same ids', () => {
  expect(sum('foreign'), about()).toBe(0)
  expect(sum('rows'), about()).toBeGreaterThan(200)
  expect(result.routes.size).toBeGreaterThan(25)
})

it('a foreign id is answered like an unknown one, and a foreign cursor is rejected', () => {
  expect(sum('leaks'), about()).toBe(0)
  expect(sum('probes'), about()).toBeGreaterThan(25)
})

it('every filter and page equals the model of that tenant', () => {
  expect(sum('wrong'), about()).toBe(0)
})

it('erasing a device of one tenant and suspending it changes nothing for the others', () => {
  expect(result.differences, about()).toEqual([])
})

it('every webhook request contains only data of its tenant', () => {
  expect(result.foreignWebhooks, about()).toBe(0)
  expect(result.webhooks).toBeGreaterThan(50)
})
