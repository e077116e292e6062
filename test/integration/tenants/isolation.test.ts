// A short run of the isolation drill: five tenants with the same ids never meet in any answer.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type IsolationRig, startIsolationRig } from '../../faults/isolation/rig.ts'
import { drillIsolation, type IsolationResult } from '../../faults/isolation/run-isolation.ts'
import { seed } from '../../support/process/seed.ts'

let rig: IsolationRig
let result: IsolationResult

beforeAll(async () => {
  rig = await startIsolationRig(seed)
  result = await drillIsolation(rig, { calls: 700, seed })
})
afterAll(() => rig?.close())

const sum = (of: 'foreign' | 'probes' | 'leaks' | 'wrong' | 'rows') =>
  [...result.routes.values()].reduce((all, one) => all + one[of], 0)
const about = () => `SEED=${seed}\n${result.examples.join('\n')}`

it('no answer has anything of another tenant, whose ids are all the same', () => {
  expect(sum('foreign'), about()).toBe(0)
  expect(sum('rows'), about()).toBeGreaterThan(700)
  expect(result.routes.size).toBeGreaterThan(25)
})

it('a foreign id is answered as one that nobody has, and a foreign cursor is refused', () => {
  expect(sum('leaks'), about()).toBe(0)
  expect(sum('probes'), about()).toBeGreaterThan(100)
})

it('every filter and page is what the model of that tenant alone says', () => {
  expect(sum('wrong'), about()).toBe(0)
})

it('erasing a device of one tenant and suspending it changes nothing for the others', () => {
  expect(result.differences, about()).toEqual([])
})

it('no webhook request has anything of another tenant than the one it goes to', () => {
  expect(result.foreignWebhooks, about()).toBe(0)
  expect(result.webhooks).toBeGreaterThan(50)
})
