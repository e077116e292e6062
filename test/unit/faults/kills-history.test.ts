/** The client's model of a history sees whatever a service could show wrongly. */
import { describe, expect, it } from 'vitest'
import {
  addAccepted,
  compareDevice,
  newDevice,
  type ShownDevice,
  toExpectedAlerts,
  type Verdict,
} from '../../faults/kills/kills-history.ts'

const calm: Verdict = { score: 0, action: 'ALLOW', flags: [] }
const block: Verdict = { score: 80, action: 'BLOCK', flags: ['HOOKING_DETECTED'] }
const at = (ms: number) => new Date(1_700_000_000_000 + ms).toISOString()
const ms = (offset: number) => 1_700_000_000_000 + offset

function makeModel() {
  const model = newDevice('acme', 'phone')
  const add = (sessionId: string, firstMs: number, verdict = calm, userId: string | null = null) =>
    addAccepted(model, {
      sessionId,
      userId,
      verdict,
      firstMs: ms(firstMs),
      okMs: ms(firstMs + 100),
    })
  add('one', 0, calm, 'ada')
  add('one', 5_000, block)
  add('two', 60_000, calm, 'bob')
  return model
}

const shown = (): ShownDevice => ({
  device_id: 'phone',
  first_seen_at: at(50),
  last_seen_at: at(60_050),
  peak_rasp_score: 80,
  users_seen_on: ['ada', 'bob'],
  sessions_total: 2,
  sessions: [
    {
      session_id: 'two',
      rasp_action: 'ALLOW',
      rasp_score: 0,
      flags: [],
      started_at: at(60_050),
      last_seen_at: at(60_050),
    },
    {
      session_id: 'one',
      rasp_action: 'BLOCK',
      rasp_score: 80,
      flags: ['HOOKING_DETECTED'],
      started_at: at(50),
      last_seen_at: at(5_050),
    },
  ],
})

const wrongs: [string, (device: ShownDevice) => void][] = [
  ['a session that is missing', (one) => one.sessions.pop()],
  [
    'a session that nobody sent',
    (one) => one.sessions.push({ ...one.sessions[1]!, session_id: 'x' }),
  ],
  ['a session that is there twice', (one) => one.sessions.push({ ...one.sessions[1]! })],
  ['a total that is not theirs', (one) => one.sessions_total++],
  ['a user that is missing', (one) => one.users_seen_on.pop()],
  ['a user that nobody sent', (one) => one.users_seen_on.push('eve')],
  ['a lower peak', (one) => (one.peak_rasp_score = 79)],
  ['a first sight before the first event', (one) => (one.first_seen_at = at(-50))],
  ['a first sight after the first event was answered', (one) => (one.first_seen_at = at(5_050))],
  ['a last sight before the last event', (one) => (one.last_seen_at = at(5_050))],
  ['sessions in another order', (one) => one.sessions.reverse()],
  ['another score of a session', (one) => (one.sessions[1]!.rasp_score = 40)],
  ['another action of a session', (one) => (one.sessions[1]!.rasp_action = 'REVIEW')],
  ['other flags of a session', (one) => (one.sessions[1]!.flags = [])],
  ['another start of a session', (one) => (one.sessions[1]!.started_at = at(5_050))],
  ['another end of a session', (one) => (one.sessions[1]!.last_seen_at = at(50))],
]

describe('the client’s model of a device', () => {
  it('agrees with a history that is right', () => {
    expect(compareDevice(makeModel(), shown())).toEqual([])
  })

  it.each(wrongs)('sees %s', (_what, spoil) => {
    const device = shown()
    spoil(device)
    expect(compareDevice(makeModel(), device)).not.toEqual([])
  })

  it('knows the alerts that are due: one for each session and action', () => {
    const model = makeModel()
    addAccepted(model, {
      sessionId: 'one',
      userId: null,
      verdict: block,
      firstMs: ms(6_000),
      okMs: ms(6_100),
    })
    expect(toExpectedAlerts([model]).get('acme')).toEqual(new Set(['phone one BLOCK']))
  })
})
