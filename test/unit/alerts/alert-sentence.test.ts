// One sentence about an alert, which people read out to customers.
import { describe, expect, it } from 'vitest'
import { toAlertSentence } from '#shared/core/alerts/alert-sentence.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import { flags } from '#shared/core/signals/flags.ts'

describe('the sentence of an alert', () => {
  it('says the heaviest three reasons, the heaviest first, whatever their order', () => {
    const reasons = [
      { code: 'DEVELOPER_SETTINGS', weight: 4 },
      { code: 'VPN_SUSPECTED', weight: 10 },
      { code: 'HOOKING_DETECTED', weight: 55 },
      { code: 'ROOTED', weight: 13 },
    ]
    const sentence =
      'This phone runs code that alters the app, is rooted and uses a VPN or a relay; risk 82 of 100.'
    expect(toAlertSentence(reasons, 82)).toBe(sentence)
    expect(toAlertSentence(reasons.toReversed(), 82)).toBe(sentence)
  })

  it('leaves out what weighs nothing, what is no reason, and what it does not know', () => {
    const reasons = [
      { code: 'ROOTED', weight: 0 },
      { code: 'PLACEHOLDER_ID', weight: 1 },
      { code: 'constructor', weight: 40 },
      { code: 'EMULATOR', weight: 41 },
    ]
    expect(toAlertSentence(reasons, 41)).toBe('This phone is an emulator; risk 41 of 100.')
    expect(toAlertSentence([], 40)).toBe('This phone is at risk; risk 40 of 100.')
  })

  it('has a name, a sentence and a clause that fits for every flag', () => {
    const names = new Set(flagCodes.map((code) => flags[code].name))
    expect(names.size).toBe(flagCodes.length)
    for (const code of flagCodes) {
      const { about, clause } = flags[code]
      expect(about).toMatch(/\.$/)
      expect(clause ?? 'is').toMatch(/^[a-z]+ [^.;]+$|^is$/)
    }
  })
})
