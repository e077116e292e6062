// A test event has one state, in words; nothing of the stores' names reaches a person.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { webFolder } from '../../../services/console/serve/pages-folder.ts'

// By name, because the pages' types would change those of all other tests.
const load = (name: string) => import(join(webFolder, 'pages', name))
const { toEndText, toShownState, toTestText } = await load('webhooks/delivery-words.ts')
const { toReasonText } = await load('integration/reason-words.ts')

const sent = { event: 'webhook.test', reason: null, ended_at: null, attempts: [] }
const ended = { ...sent, ended_at: '2026-01-02T03:04:05Z' }

it('a test event is being sent, was delivered or was not, and why', () => {
  for (const state of ['pending', 'sending'] as const) {
    expect(toShownState({ ...sent, state })).toBe('sending')
    expect(toTestText({ ...sent, state })).toBe('The test event is being sent.')
  }
  const ok = { ...ended, state: 'delivered', attempts: [{ status: 204, error: null }] } as const
  expect(toTestText(ok)).toBe('The test event was delivered: the receiver answered 204.')
  const failed = { ...ended, state: 'failed', reason: 'exhausted' } as const
  const not = 'The test event was not delivered: '
  const answered = { ...failed, attempts: [{ status: 500, error: 'status 500' }] }
  expect(toTestText(answered)).toBe(`${not}the receiver answered 500.`)
  const refused = { ...failed, attempts: [{ status: null, error: 'connection refused' }] }
  expect(toTestText(refused)).toBe(`${not}connection refused.`)
  const skipped = { ...ended, state: 'skipped', reason: 'no_webhook' } as const
  expect(toTestText(skipped)).toBe(`${not}no webhook was set up.`)
})

it('other deliveries have the state that they have', () => {
  expect(toShownState({ ...sent, event: 'alert.created', state: 'pending' })).toBe('pending')
})

it('reasons are words', () => {
  for (const reason of ['exhausted', 'gone', 'no_webhook']) expect(toEndText(reason)).toMatch(/ /)
  expect(toReasonText({ reason: 'retired_secret', code: 'signature_invalid' })).toMatch(/ /)
  expect(toReasonText({ reason: null, code: 'accepted' })).toBe('accepted')
})
