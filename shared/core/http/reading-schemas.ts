/**
 * The schemas of the REST API beside alerts and devices: users, events, and the disposition of an
 * alert.
 */
import { z } from 'zod'
import { listedOutcomeSchema } from '#shared/core/alerts/alert-schema.ts'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { noteCharactersMax } from '#shared/core/base/limits/http.ts'
import { listedDispositionsMax, userDevicesPageMax } from '#shared/core/base/limits/rest-api.ts'
import { devicePhoneField } from '#shared/core/identity/phone-schemas.ts'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import { cursorParameter, pageSize } from './api-schemas.ts'
import { instantSchema, riskSchema } from './field-schemas.ts'
import { operatorText } from './operator-text.ts'

/** The path of a call about one alert. */
export const alertPathSchema = z.object({
  alert_id: z.string().min(1).max(64).meta({ description: 'An `alert_id`.' }),
})

/** The body of `POST /v1/di/alerts/{alert_id}/disposition`. */
export const dispositionBodySchema = z.strictObject({
  disposition: z.enum(dispositions, `must be one of ${dispositions.join(', ')}`),
  note: operatorText(noteCharactersMax)
    .nullish()
    .meta({ description: 'Why. It is kept with the change.' }),
})

/** The body of `POST /v1/di/alerts/dispositions`. */
export const listedDispositionsBody = dispositionBodySchema.extend({
  alert_ids: z
    .array(z.string().min(1).max(64))
    .min(1)
    .max(listedDispositionsMax)
    .refine((ids) => new Set(ids).size === ids.length, 'must name each alert once')
    .meta({ description: `The alerts, each once, at most ${listedDispositionsMax}.` }),
})

export const listedOutcomesSchema = z.object({
  data: z.array(listedOutcomeSchema).meta({ description: 'In the order of `alert_ids`.' }),
  changed: z.int().min(0).meta({ description: 'How many changed.' }),
})

/** The path of `GET /v1/di/users/{user_id}`. */
export const userPathSchema = z.object({
  user_id: idSchema.meta({
    description:
      'A `user_id` or `account_id` from any telemetry, percent-encoded once. A slash may be `%2F` or plain, since proxies may decode it.',
  }),
})

/** The query of `GET /v1/di/users/{user_id}`. */
export const userQuerySchema = z.strictObject({
  devices_limit: pageSize(
    userDevicesPageMax,
    userDevicesPageMax,
    `Devices in the response, at most ${userDevicesPageMax}.`,
  ),
  devices_cursor: cursorParameter('`devices_cursor` of the previous response.'),
})
export type UserQuery = z.output<typeof userQuerySchema>

const userDeviceSchema = z
  .object({
    device_id: z.string(),
    first_seen_at: instantSchema,
    last_seen_at: instantSchema,
    peak_rasp_score: riskSchema.meta({ description: 'The user’s highest score on the device.' }),
    risk_score: riskSchema.meta({ description: 'The user’s highest risk score on the device.' }),
    phone: devicePhoneField,
  })
  .meta({ description: 'A device of a user. The times are those of the user on it.' })
  .meta({ id: 'UserDevice' })

export const userSchema = z
  .object({
    user_id: z.string(),
    first_seen_at: instantSchema,
    last_seen_at: instantSchema,
    peak_rasp_score: riskSchema.meta({ description: 'The highest score of the user’s events.' }),
    risk_score: riskSchema.meta({ description: 'The highest risk score of the user’s events.' }),
    devices: z.array(userDeviceSchema).meta({ description: 'Most recent first: by last sight.' }),
    devices_total: z.int().min(0).meta({ description: 'How many devices there are in all.' }),
    devices_cursor: z.string().nullable().meta({
      description: 'Pass it as `devices_cursor` for older devices; null when there are none.',
    }),
  })
  .meta({ id: 'User' })
