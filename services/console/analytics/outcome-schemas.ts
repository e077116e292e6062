/** Schemas of what was made of the sessions whose outcome is known. */
import { z } from 'zod'

const share = z.number().min(0).max(1)
const count = (description: string) => z.number().int().describe(description)

export const rateSchema = z.object({
  rate: share.nullable().describe('null with fewer than 10 cases: too few to say'),
  low: share.describe('with high: the 95 % confidence interval'),
  high: share,
})
export const money = (description: string) => z.string().describe(description)

export const outcomesAsOf = z
  .string()
  .nullable()
  .describe('when labels and dispositions were copied; they come late')

export const outcomeCounts = {
  fraud: z.number().int().describe('sessions that turned out to be fraud'),
  caught: z.number().int().describe('of them, those with an alert'),
  missed: z.number().int(),
  recall: rateSchema.describe('caught / fraud'),
  honest: z.number().int().describe('sessions that turned out to be legitimate'),
  harmed: z.number().int().describe('of them, those with an alert'),
  harmed_users: z.number().int().describe('users and accounts of these'),
  harmed_share: rateSchema.describe('harmed / honest'),
  losses: z.array(
    z.object({
      currency: z.string(),
      lost: money('a decimal text; a loss counts once, at its last fraudulent session'),
      caught: money('of it, in sessions with an alert'),
      missed: money('of it, in sessions without'),
    }),
  ),
}

export const outcomeCountsSchema = z.object(outcomeCounts)

/** Sessions for which another policy changes whether they have an alert. */
export const outcomeMoves = {
  fraud_lost: count('fraudulent sessions that would no longer be caught'),
  fraud_gained: count('fraudulent sessions that would be caught in addition'),
  honest_spared: count('honest sessions that would no longer be harmed'),
  honest_newly_harmed: count('honest sessions that would be harmed in addition'),
}
