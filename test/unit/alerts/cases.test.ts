// The rule of cases, without a database.
import { describe, expect, test } from 'vitest'
import { type CaseRow, countFlags, toCase } from '#shared/core/cases/case.ts'
import {
  decideCase,
  decideRegroup,
  defaultCaseRules,
  toCaseSubject,
  toDueMs,
} from '#shared/core/cases/case-rules.ts'
import { raiseIntoCases, toSubjectKey } from '#shared/core/cases/raised-cases.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'

const hour = 3_600_000
const day = 24 * hour

describe('whom a case is about', () => {
  const all = { deviceId: 'd', userId: 'u', phoneId: 'phn_1' }

  test.each([
    ['phone', all, { kind: 'phone', id: 'phn_1' }],
    ['phone', { ...all, phoneId: null }, { kind: 'device', id: 'd' }],
    ['device', all, { kind: 'device', id: 'd' }],
    ['user', all, { kind: 'user', id: 'u' }],
    ['user', { ...all, userId: null }, { kind: 'device', id: 'd' }],
  ] as const)('grouped by %s, of %j, is %j', (groupBy, alert, subject) => {
    expect(toCaseSubject(alert, { groupBy })).toEqual(subject)
  })
})

describe('what a new alert does', () => {
  test.each([
    ['begins a case without one', null, 7, 0, 'begin'],
    ['joins an open one, however old', null, 7, 900 * day, 'join'],
    ['opens a closed one within the days', 0, 7, 7 * day - 1, 'reopen'],
    ['begins anew after them', 0, 7, 7 * day, 'begin'],
    ['opens one whose end is ahead of the clock', day, 7, 0, 'reopen'],
    ['never opens one when the rule has no days', 0, 0, 0, 'begin'],
  ] as const)('%s', (name, closedAtMs, reopenDays, atMs, step) => {
    const present = name.includes('without') ? null : { closedAtMs }
    expect(decideCase(present, { reopenDays }, atMs)).toBe(step)
  })

  test.each([
    ['moves alerts away from those of others', {}, 'move'],
    ['moves as a whole into the case that is there', { isWhole: true }, 'merge'],
    ['takes the other phone where it has no case', { isWhole: true, hasTarget: false }, 'rename'],
    ['stays where the other phone’s alerts fall into it', { isWhole: true, isThere: true }, 'stay'],
    ['that was split off stays with alerts of others', { takesAlerts: false }, 'stay'],
    ['that was split off takes it', { takesAlerts: false, isWhole: true }, 'rename'],
  ] as const)('a case whose install is corrected to another phone %s', (_, more, step) => {
    const left = { takesAlerts: true, isWhole: false, isThere: false, hasTarget: true, ...more }
    expect(decideRegroup(left)).toBe(step)
  })

  test('is due by its action', () => {
    const at = (action: 'BLOCK' | 'REVIEW') => toDueMs({ action, createdAtMs: 0 }, defaultCaseRules)
    expect([at('BLOCK'), at('REVIEW')]).toEqual([4 * hour, 24 * hour])
  })
})

test('alerts that are raised together join one case of each subject, also of merged ones', () => {
  const raise = (deviceId: string, n: number, action: 'BLOCK' | 'REVIEW' = 'REVIEW') => ({
    candidate: makeAlertCandidate({
      tenantId: 'a',
      sessionId: `s${n}`,
      deviceId,
      action,
      riskScore: 40 + n,
    }),
    createdAtMs: 1_000 + n,
  })
  const key = (id: string) => toSubjectKey({ tenantId: 'a', subject: { kind: 'device', id } })
  const open = { caseId: 'cas_open', closedAtMs: null, flags: { ROOTED: 5, EMULATOR: 1 } }
  const { caseIds, cases } = raiseIntoCases(
    [raise('new', 1), raise('b', 2), raise('new', 3, 'BLOCK'), raise('c', 4)],
    {
      rulesOf: () => defaultCaseRules,
      found: new Map([
        [key('b'), open],
        [key('c'), open],
      ]),
      newCaseId: () => 'cas_new',
    },
  )
  expect(caseIds).toEqual(['cas_new', 'cas_open', 'cas_new', 'cas_open'])
  expect(cases).toMatchObject([
    {
      caseId: 'cas_new',
      alerts: 2,
      riskScore: 43,
      action: 'BLOCK',
      flags: { ROOTED: 2 },
      firstMs: 1_001,
      latestMs: 1_003,
      dueMs: 1_003 + 4 * hour,
    },
    {
      caseId: 'cas_open',
      alerts: 2,
      reopened: false,
      subject: { id: 'b' },
      flags: { ROOTED: 7, EMULATOR: 1 },
    },
  ])
})

test('a flag counts once an alert', () => {
  const flags = countFlags([[{ code: 'ROOTED' }, { code: 'ROOTED' }], [{ code: 'ROOTED' }], []])
  expect(flags).toEqual({ ROOTED: 2 })
})

test('a lease and a snooze that are over are not shown, and a due time that is past is breached', () => {
  const at = new Date(1_000)
  const row = { due_at: at, snoozed_until: at, leased_until: at, leased_by: 'ada' }
  const other = {
    flags: {},
    risk_score: 81,
    first_alert_at: at,
    latest_alert_at: at,
    judged_at: null,
  }
  const show = (nowMs: number) => toCase({ ...row, ...other } as CaseRow, nowMs)
  const over = { breached: true, snoozed_until: null, leased_by: null, severity: 'CRITICAL' }
  expect(show(1_000)).toMatchObject(over)
  expect(show(999)).toMatchObject({ breached: false, leased_by: 'ada' })
})
