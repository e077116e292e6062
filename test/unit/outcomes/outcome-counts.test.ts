import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type KnownSessions,
  sumOutcomes,
  toOutcomeCounts,
} from '#shared/core/outcomes/outcome-counts.ts'

const currencies = ['EUR', 'JPY', 'TND'] as const
/** Ten-thousandths, as the engine has them. */
const units = fc.integer({ min: 0, max: 99_999_999 })
const known = fc.record({
  fraud: fc.nat(9),
  legitimate: fc.nat(9),
  amounts: fc.uniqueArray(fc.tuple(fc.constantFrom(...currencies), units), {
    selector: ([currency]) => currency,
  }),
  honestUsers: fc.uniqueArray(fc.nat(12), { maxLength: 5 }),
  isAlerted: fc.boolean(),
})

test('sums of counted sessions are those of plain counting; money has no rounding', () => {
  fc.assert(
    fc.property(fc.array(known, { maxLength: 20 }), (all) => {
      const toText = (amount: number) =>
        `${Math.floor(amount / 10_000)}.${String(amount % 10_000).padStart(4, '0')}`
      const sessions = all.map(({ amounts, ...one }): KnownSessions & { isAlerted: boolean } => ({
        ...one,
        losses: Object.fromEntries(amounts.map(([currency, amount]) => [currency, toText(amount)])),
      }))
      const counts = toOutcomeCounts(sumOutcomes(sessions, ({ isAlerted }) => isAlerted))
      const alerted = all.filter(({ isAlerted }) => isAlerted)
      const sum = (of: typeof all, what: 'fraud' | 'legitimate') =>
        of.reduce((total, one) => total + one[what], 0)
      expect(counts).toMatchObject({
        fraud: sum(all, 'fraud'),
        caught: sum(alerted, 'fraud'),
        missed: sum(all, 'fraud') - sum(alerted, 'fraud'),
        honest: sum(all, 'legitimate'),
        harmed: sum(alerted, 'legitimate'),
        harmed_users: new Set(alerted.flatMap(({ honestUsers }) => honestUsers)).size,
      })
      const money = (of: typeof all, currency: string) =>
        of.reduce((total, { amounts }) => {
          return total + (amounts.find(([name]) => name === currency)?.[1] ?? 0)
        }, 0)
      const toUnits = (text: string) => Math.round(10_000 * Number(text))
      const named = new Set(all.flatMap(({ amounts }) => amounts.map(([currency]) => currency)))
      expect(counts.losses.map(({ currency }) => currency)).toEqual([...named].sort())
      for (const { currency, lost, caught, missed } of counts.losses) {
        const [total, found] = [money(all, currency), money(alerted, currency)]
        expect([lost, caught, missed].map(toUnits)).toEqual([total, found, total - found])
      }
    }),
  )
})
