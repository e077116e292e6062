// `di phones`: what it asks the API for, and the text that people get.
import { Command } from 'commander'
import { expect, it } from 'vitest'
import type { CliContext } from '../../../services/console/cli/context.ts'
import { phones } from '../../../services/console/cli/phones/phones.ts'

/** @returns the calls, and what is printed */
async function run(answer: unknown, ...args: string[]) {
  const calls: unknown[][] = []
  let printed = ''
  const program = new Command('di').exitOverride().configureOutput({ writeErr: () => undefined })
  const context = {
    adminFetch: async (...call: unknown[]) => {
      calls.push(call)
      return answer
    },
    out: (value: unknown, toText: (value: never) => string) => {
      printed = toText(value as never)
    },
  }
  phones(program, context as unknown as CliContext)
  await program.parseAsync(['phones', ...args], { from: 'user' })
  return { calls, printed }
}

const at = '2026-01-02T03:04:05.678Z'
const correction = {
  correction_id: 'phc_1',
  kind: 'split',
  device_id: 'b',
  phone_id: 'phn_b',
  by: 'ann@example.com',
  at,
  undone_at: null,
}
const page = {
  phone: {
    phone_id: 'phn_a',
    first_seen_at: at,
    last_seen_at: at,
    risk_score: 40,
    installs: [
      {
        device_id: 'a',
        link: 'linked',
        confidence: 0.998,
        evidence: [
          { field: 'boot', level: 0, weight: -0.5, holders: null },
          { field: 'identifier keychain_id', level: 1, weight: 9.46, holders: 1 },
        ],
        first_seen_at: at,
        last_seen_at: at,
        risk_score: 40,
      },
    ],
    installs_total: 1,
    users: [],
    users_total: 0,
  },
  alerts: { total: 2, data: [] },
  corrections: [correction],
}

it('shows installs with what weighs most first, and corrections', async () => {
  const { calls, printed } = await run(page, 'show', 'acme', 'phn_a')
  expect(calls).toEqual([['GET', '/tenants/acme/phones/phn_a']])
  expect(printed).toMatch(/^a +linked +0.998 .* identifier keychain_id \+9\.5, boot -0\.5$/m)
  expect(printed).toMatch(/^phc_1 +split +b +phn_b +2026-01-02 03:04:05Z +ann@example\.com +-$/m)
  expect(printed).toMatch(/^alerts +2$/m)
  expect(printed).not.toContain('USER')
})

it('splits, joins and undoes, with the reason', async () => {
  const path = '/tenants/acme/phone-corrections'
  const split = await run(correction, 'split', 'acme', 'b', '--reason', 'sold')
  const body = { device_id: 'b', phone_id: null, reason: 'sold' }
  expect(split.calls).toEqual([['POST', path, body, {}]])
  expect(split.printed).toMatch(/^kind +split$/m)
  const join = await run(correction, 'join', 'acme', 'b', 'phn_a', '--reason', 'seen')
  const joined = { device_id: 'b', phone_id: 'phn_a', reason: 'seen' }
  expect(join.calls).toEqual([['POST', path, joined, {}]])
  const undo = await run({ ...correction, undone_at: at }, 'undo', 'acme', 'phc_1')
  expect(undo.calls).toEqual([['POST', `${path}/phc_1/undo`, undefined, {}]])
  expect(undo.printed).toMatch(/^undone +2026-01-02 03:04:05Z$/m)
  await expect(run(correction, 'split', 'acme', 'b')).rejects.toThrow('--reason')
})
