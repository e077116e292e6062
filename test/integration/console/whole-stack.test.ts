// What operators do on a whole stack. These parts share one, and each has tenants of its own.
import { afterAll, beforeAll, describe } from 'vitest'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { describeAlertWork } from './alert-work.ts'
import { describeCases } from './cases.ts'
import { describeExplanations } from './explain.ts'
import { describeIdempotency } from './idempotency.ts'

let running: TestStack
beforeAll(async () => {
  running = await startStack()
})
afterAll(() => running?.discard())

describe('the alerts of a tenant', () => describeAlertWork(() => running))
describe('the cases of a tenant', () => describeCases(() => running))
describe('a change', () => describeIdempotency(() => running))
describe('a stored event', () => describeExplanations(() => running))
