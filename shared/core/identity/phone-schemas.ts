/** The schemas of phones, for the REST API and the admin API. */
import { z } from 'zod'
import {
  phoneAlertsShownMax,
  phoneInstallsShownMax,
  phoneUsersShownMax,
} from '#shared/core/base/limits/entities.ts'
import { instantSchema, riskSchema } from '#shared/core/http/field-schemas.ts'

export const linkKinds = ['first', 'linked', 'possible'] as const
export type LinkKind = (typeof linkKinds)[number]

export const phoneIdSchema = z
  .string()
  .regex(/^phn_[A-Za-z0-9_-]{22}$/, 'must be phn_ and 22 characters')
  .meta({ description: 'A `phone_id`.', examples: ['phn_v9TKx2PcZ0q4oQ4lZc8bHw'] })

export const phonePathSchema = z.object({ phone_id: phoneIdSchema })

const confidenceSchema = z.number().min(0).max(1).meta({
  description:
    'Of being on this phone: of links with 0.99 one in a hundred is wrong. 1 of a first install and of what an analyst says.',
})

/** The phone of an install. */
export const devicePhoneSchema = z
  .object({
    phone_id: z.string(),
    confidence: confidenceSchema,
    installs: z.int().min(1).meta({ description: 'How many installs the phone has.' }),
  })
  .meta({
    description:
      'The phone that an install is on, as far as its SDK’s identifiers and traits, or an analyst, tell.',
  })
  .meta({ id: 'DevicePhone' })
export type DevicePhoneAnswer = z.output<typeof devicePhoneSchema>

/** The member `phone` of an answer about an install. */
export const devicePhoneField = devicePhoneSchema.nullable().optional().meta({
  description:
    'The phone that the install is on; null when it sent nothing to tell phones apart. Left out while it cannot be read.',
})

/** The phone of an alert, as it was when the alert was raised. */
export const alertPhoneSchema = z
  .object({ phone_id: z.string(), confidence: confidenceSchema })
  .meta({ id: 'AlertPhone' })

export const evidenceSchema = z
  .object({
    field: z.string().meta({
      description:
        '`identifier` and the name of the identifier, `traits` (hardware, setup and network), `user`, `boot`, `model`, `omitted` (hardware that the phone has told) or `in use` (the phone was in use after the system of this install had started). New ones may be added.',
      examples: ['identifier keychain_id'],
    }),
    level: z.int().min(0).meta({
      description: '0 differs. Of traits 1 is equal hardware, 2 setup, 3 setup and network.',
    }),
    weight: z.number().meta({
      description: 'A natural logarithm: above 0 it speaks for one phone, below 0 against it.',
    }),
    holders: z.int().nullable().meta({
      description: 'How many phones had the value in common; null where values are not counted.',
    }),
  })
  .meta({ description: 'One comparison of an install with a phone.' })
  .meta({ id: 'PhoneEvidence' })
export type PhoneEvidence = z.output<typeof evidenceSchema>

const phoneInstallSchema = z
  .object({
    device_id: z.string(),
    link: z.enum([...linkKinds, 'corrected']).meta({
      description:
        '`first`: a phone of its own. `linked`: on a known phone. `possible`: a phone of its own that may be `possible_phone_id`. `corrected`: an analyst says so.',
    }),
    confidence: confidenceSchema,
    evidence: z.array(evidenceSchema).meta({
      description: 'Of what the service decided, with the phone it was compared with.',
    }),
    decided_phone_id: z.string().meta({ description: 'What the service decided.' }),
    possible_phone_id: z.string().nullable(),
    possible_confidence: z.number().nullable().meta({ description: 'Of `possible_phone_id`.' }),
    identifiers_shared: z.boolean().meta({
      description: 'Its identifiers are those of several phones, so they were left out.',
    }),
    first_seen_at: instantSchema,
    last_seen_at: instantSchema,
    risk_score: riskSchema.meta({ description: 'The highest risk score of its events.' }),
  })
  .meta({ description: 'An install on a phone.' })
  .meta({ id: 'PhoneInstall' })

const phoneUserSchema = z
  .object({
    user_id: z.string(),
    first_seen_at: instantSchema,
    last_seen_at: instantSchema,
    installs: z.int().min(1).meta({ description: 'On how many of the installs it was seen.' }),
  })
  .meta({ description: 'A user or account on a phone.' })
  .meta({ id: 'PhoneUser' })

export const phoneFields = {
  phone_id: z.string(),
  first_seen_at: instantSchema.meta({ description: 'Of the installs in the answer.' }),
  last_seen_at: instantSchema.meta({ description: 'Of the installs in the answer.' }),
  risk_score: riskSchema.meta({ description: 'The highest risk score of these installs.' }),
  installs: z.array(phoneInstallSchema).meta({
    description: `The latest first, at most ${phoneInstallsShownMax}.`,
  }),
  installs_total: z.int().min(1),
  users: z.array(phoneUserSchema).meta({
    description: `Users and accounts of these installs, the latest first, at most ${phoneUsersShownMax}. Placeholders such as \`unknown\` are left out.`,
  }),
  users_total: z.int().min(0),
} as const

const alertsDescription = `The newest alerts of these installs, at most ${phoneAlertsShownMax}.`

/** A phone with its alerts. */
export const toPhoneSchema = <T extends z.ZodType>(alert: T) =>
  z.object({
    ...phoneFields,
    alerts: z.array(alert).meta({ description: alertsDescription }),
    alerts_total: z.int().min(0),
  })
