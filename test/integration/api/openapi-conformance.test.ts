/**
 * Every operation of both documents, called in process on real stores, and each answer compared
 * with its document; `npm run faults -- openapi` makes more of the same calls.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { drillLimitMs, drillOptions } from '../../faults/drill-options.ts'
import type { Fault } from '../../support/openapi/check-answer.ts'
import { type OpenapiRig, startOpenapiRig } from '../../support/openapi/rig.ts'
import { drillOpenapi, type OpenapiFindings } from '../../support/openapi/run-openapi.ts'
import { seed } from '../../support/process/seed.ts'

let rig: OpenapiRig
let findings: OpenapiFindings

const options = drillOptions({ calls: 300, 'calls-least': 4 }, { calls: 20_000, 'calls-least': 20 })

beforeAll(async () => {
  rig = await startOpenapiRig()
  findings = await drillOpenapi(rig, {
    calls: options.calls,
    callsLeast: options['calls-least'],
    seed,
  })
}, drillLimitMs)
afterAll(() => rig?.close())

/** The faults of some kinds, as text; empty when there are none. */
const faultsOf = (...kinds: Fault['kind'][]) =>
  [...findings.faults.values()]
    .filter(({ kind }) => kinds.includes(kind))
    .map(
      (one) =>
        `SEED=${seed} ${one.kind} ×${one.count} ${one.operation}: ${one.why}: ${one.example}`,
    )

it('no answer is a 500', () => {
  expect(faultsOf('server_error')).toEqual([])
})

it('no status is undocumented', () => {
  expect(faultsOf('undocumented_status')).toEqual([])
})

it('every body and header matches the document', () => {
  const kinds = ['undocumented_content_type', 'body_mismatch'] as const
  expect(faultsOf(...kinds, 'header_missing', 'header_mismatch')).toEqual([])
})

it('a secured operation without its key is a 401', () => {
  expect(faultsOf('ignored_auth')).toEqual([])
})

it('calls that the document does not allow are rejected', () => {
  expect(faultsOf('bad_input_accepted', 'not_understood')).toEqual([])
})

it('valid calls succeed, over every kind of operation', () => {
  // There is no identity provider. Registrations need a challenge, and what a step-up guards a
  // code, which random values do not have.
  const untested = findings.operations.filter(
    ({ name, succeeded }) => succeeded === 0 && !name.includes('/oidc'),
  )
  expect(findings.operations.length).toBeGreaterThan(45)
  const untestedMax = findings.operations.length / 4
  expect(untested.length, untested.map(({ name }) => name).join()).toBeLessThan(untestedMax)
  const valid = findings.operations.reduce((all, one) => all + one.valid, 0)
  const succeeded = findings.operations.reduce((all, one) => all + one.succeeded, 0)
  expect(succeeded / valid).toBeGreaterThan(0.5)
})
