/** The schemas of fields that several answers of the REST API have. */
import { z } from 'zod'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { flags } from '#shared/core/signals/flags.ts'

export const instantSchema = z.iso.datetime({ precision: 3 }).meta({
  description: 'ISO-8601 in UTC with milliseconds.',
  examples: ['2026-03-01T09:30:00.123Z'],
})
export const riskSchema = z.int().min(0).max(100)
export const riskPercentileSchema = z
  .number()
  .min(0)
  .max(100)
  .optional()
  .meta({
    description:
      'How many percent of the tenant’s sessions of the last 30 days have a lower risk score, as of the last hour; left out while it is not known.',
    examples: [99.2],
  })
export const flagSchema = z
  .string()
  .meta({
    description: `A reason flag. New ones may be added. ${Object.entries(flags)
      .map(([flag, { about }]) => `\`${flag}\`: ${about}`)
      .join(' ')}`,
    examples: ['VPN_SUSPECTED', 'HIGH_VELOCITY'],
  })
  .meta({ id: 'Flag' })

export const dispositionSchema = z
  .enum(dispositions)
  .meta({ description: 'The operator’s judgement of the alert. Every alert begins as OPEN.' })
  .meta({ id: 'Disposition' })
export const actionSchema = z
  .enum(actions)
  .meta({ description: 'The authoritative action. It replaces whatever the client computed.' })
  .meta({ id: 'Action' })

const optionalText = (description: string) => z.string().optional().meta({ description })

/** What an app says of itself; a member is missing where the telemetry has no such text. */
export const clientFields = {
  platform: optionalText('As the SDK spells it. Of the session that was seen last.'),
  sdk_version: optionalText('Of the same.'),
  app_version: optionalText('Of the same: `app.version`, or `app_version`.'),
  device_model: optionalText('Of the same: `device.model`, or `device_model`.'),
}

const paths = (description: string) => z.array(z.string()).optional().meta({ description })
const of = (description: string) => z.number().optional().meta({ description })

/** What the score's reasons and the device's history name; new fields may be added. */
const evidenceSchema = z
  .looseObject({
    signals: paths('The signals, by path.'),
    caps: z
      .array(
        z.object({
          category: z.string(),
          group: z.array(z.string()).optional(),
          cap: z.number(),
          sum: z.number(),
        }),
      )
      .optional()
      .meta({ description: 'Caps that lowered the weight, with the sum that each limited.' }),
    strong_evidence: paths('Critical signals that filled their category to its cap.'),
    halved_by: paths('Signals by which the category counts half.'),
    soft_limit: of('The most points of all soft categories.'),
    floor: z
      .object({ signal: z.string(), score: z.number() })
      .optional()
      .meta({ description: 'The signal with a floor, and the score that it raised the event to.' }),
    metric: z.string().optional().meta({ description: 'What was counted.' }),
    count: of('How many there were.'),
    threshold: of('More than so many is a reason.'),
    window: z
      .string()
      .optional()
      .meta({ description: 'In which time.', examples: ['5m', '30d', 'event'] }),
    capped: z.boolean().optional().meta({ description: 'Whether the history’s cap lowered it.' }),
  })
  .meta({
    description: 'Signals by path, or a count with its window. New fields may be added.',
  })
  .meta({ id: 'Evidence' })

export const reasonObjectSchema = z
  .object({
    code: flagSchema,
    weight: z.int().meta({ description: 'The points that this reason adds to the score.' }),
    evidence: evidenceSchema,
  })
  .meta({ description: 'Why a score is what it is. The weights add up to the score.' })
  .meta({ id: 'Reason' })
