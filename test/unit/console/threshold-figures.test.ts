/** What the thresholds of a draft mean, and how they move. */
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from '#shared/core/base/seeded-random.ts'
import { noScores } from '#shared/core/outcomes/score-distribution.ts'
import {
  moveThreshold,
  toFigures,
  toMoved,
} from '../../../services/console/web/pages/policies/picker/threshold-figures.ts'
import { addFloor, addGroup } from '../../../services/console/web/pages/policies/policy-document.ts'

type Session = { score: number; outcome: 'fraud' | 'legitimate' | 'unlabelled'; user: number }

describe('a threshold', () => {
  it('means what counting sessions and users one by one says', () => {
    const random = createSeededRandom(11)
    const outcomes = ['fraud', 'legitimate', 'unlabelled'] as const
    const sessions = Array.from({ length: 600 }, (): Session => {
      const outcome = outcomes[Math.floor(random() * 3)]!
      return { score: Math.floor(random() * 101), outcome, user: Math.floor(random() * 80) }
    })
    const scores = { counts: noScores(), days: 4, honest_users: noScores().fraud }
    for (const { score, outcome } of sessions) scores.counts[outcome][score]! += 1
    const honest = sessions.filter(({ outcome }) => outcome === 'legitimate')
    for (const user of new Set(honest.map((one) => one.user))) {
      const own = honest.filter((one) => one.user === user).map(({ score }) => score)
      scores.honest_users[Math.max(...own)]! += 1
    }
    for (const threshold of [0, 1, 37, 100, 101]) {
      const above = sessions.filter(({ score }) => score >= threshold)
      const caught = above.filter(({ outcome }) => outcome === 'fraud').length
      const harmed = above.filter(({ outcome }) => outcome === 'legitimate')
      expect(toFigures(scores, threshold)).toMatchObject({
        alerts: above.length,
        alerts_a_day: above.length / 4,
        caught,
        harmed: harmed.length,
        harmed_users: new Set(harmed.map(({ user }) => user)).size,
      })
    }
  })

  it('stays in its range, and REVIEW is never above BLOCK', () => {
    const from = { review: 40, block: 70 }
    expect(moveThreshold(from, 'review', 80)).toEqual({ review: 80, block: 80 })
    expect(moveThreshold(from, 'review', 300)).toEqual({ review: 100, block: 100 })
    expect(moveThreshold(from, 'block', 12.4)).toEqual({ review: 12, block: 12 })
    expect(moveThreshold(from, 'block', 300)).toEqual({ review: 40, block: 101 })
    expect(moveThreshold(from, 'block', -5)).toEqual({ review: 1, block: 1 })
  })

  it('is moved by the keys of a slider alone', () => {
    const keys = ['ArrowLeft', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End', 'Tab', 'toString']
    const moved = keys.map((key) => toMoved(key, 'block', 50))
    expect(moved).toEqual([49, 51, 40, 60, 1, 101, null, null])
    expect(toMoved('End', 'review', 50)).toBe(100)
  })
})

describe('a simple rule', () => {
  it('becomes a floor beside the others, at BLOCK or the highest score', () => {
    const rule = { signals: ['root.rooted', 'network.tor_ip'], need: 'all' as const }
    const ruleFloor = { ...rule, least: {} }
    const own = { score: 60, signals: ['debugger.frida_detected'] }
    const document = { name: 'x', thresholds: { review: 40, block: 70 }, categories: {} }
    expect(addFloor({ ...document, floors: [own] }, ruleFloor).floors).toEqual([
      own,
      { score: 70, ...rule },
    ])
    const never = { ...document, thresholds: { review: 40, block: 101 } }
    expect(addFloor(never, ruleFloor).floors).toEqual([{ score: 100, ...rule }])
  })

  const document = {
    name: 'x',
    thresholds: { review: 40, block: 70 },
    categories: {
      root: { cap: 70, signals: { rooted: 0, test_keys: 8, magisk_detected: 45 } },
      tamper: { cap: 90, signals: { patched_days: { atLeast: 3, weight: 0 } } },
    },
    serverCategories: { attestation: { cap: 90, signals: {} } },
  }

  it('becomes a floor that can hold: its signals score', () => {
    const signals = ['root.rooted', 'root.test_keys', 'tamper.patched_days', 'attestation.revoked']
    const least = { 'root.rooted': 1, 'root.test_keys': 1, 'attestation.revoked': { whenFalse: 1 } }
    const next = addFloor(document, { signals, need: 'all', least })
    expect(next.categories.root!.signals).toEqual({ rooted: 1, test_keys: 8, magisk_detected: 45 })
    expect(next.categories.tamper!.signals).toEqual({ patched_days: { atLeast: 3, weight: 1 } })
    expect(next.serverCategories!.attestation!.signals).toEqual({ revoked: { whenFalse: 1 } })
  })

  it('becomes a group that brings what the heaviest of its signals does', () => {
    const rule = { category: 'root', signals: ['magisk_detected', 'test_keys'] }
    const next = addGroup(document, rule)!
    expect(next.categories.root!.groups).toEqual([{ cap: 45, signals: rule.signals }])
    expect(addGroup(next, { category: 'root', signals: ['rooted', 'test_keys'] })).toBeNull()
    expect(addGroup(document, { category: 'network', signals: ['tor_ip', 'proxy_ip'] })).toBeNull()
  })
})
