/** Schemas of devices, users and search in the admin API. */
import { z } from 'zod'
import { operatorAlertSchema } from '#shared/core/alerts/alert-schema.ts'
import { verdictCountsFields, verdictCountsSchema } from '#shared/core/alerts/alert-work-schemas.ts'
import { nodeVerdictsCountedMax } from '#shared/core/base/limits/alerts.ts'
import {
  linkedMax,
  sessionUsersShownMax,
  sharedShownMax,
} from '#shared/core/base/limits/entities.ts'
import {
  cursorParameter,
  deviceSchema,
  pageSize,
  sessionSchema,
} from '#shared/core/http/api-schemas.ts'
import { userSchema } from '#shared/core/http/reading-schemas.ts'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import { tenantIdSchema } from '../http/schemas.ts'

/** Sessions of a page, and alerts beside it. */
export const sessionsShownMax = 1_000
const devicesShownMax = 1_000
export const alertsShownMax = 50

export const deviceParams = z.object({ tenant_id: tenantIdSchema, device_id: idSchema })
export const userParams = z.object({ tenant_id: tenantIdSchema, user_id: idSchema })

export const deviceQuery = z.strictObject({
  sessions_limit: pageSize(sessionsShownMax, 200, `At most ${sessionsShownMax} sessions.`),
  sessions_cursor: cursorParameter('`sessions_cursor` of the previous response.'),
})

export const userQuery = z.strictObject({
  devices_limit: pageSize(devicesShownMax, 200, `At most ${devicesShownMax} devices.`),
  devices_cursor: cursorParameter('`devices_cursor` of the previous response.'),
})

const alertsSchema = z.object({
  total: z.int(),
  verdicts: verdictCountsSchema,
  data: z.array(operatorAlertSchema).describe(`the newest ${alertsShownMax}`),
})

/** Devices or users that are linked to another. */
export const linksSchema = z.object({
  data: z
    .array(
      z.object({
        id: z.string(),
        last_seen_at: z.string().describe('when it was last seen with anything that is shared'),
        shared: z
          .array(z.object({ id: z.string(), last_seen_at: z.string() }))
          .describe(`users in common of a device, devices of a user: the latest ${sharedShownMax}`),
        shared_total: z.int(),
        sessions: z.int().describe('sessions in common, of a device'),
      }),
    )
    .describe(`those with most in common first, at most ${linkedMax}`),
  alerts: z
    .array(
      z.object({
        kind: z.enum(['device', 'user']),
        id: z.string(),
        risk_score: z.int().describe('the highest of these alerts'),
        ...verdictCountsFields,
      }),
    )
    .describe(
      `those that have alerts of the one that was asked for, of these, and of the first ` +
        `${linkedMax} that they share; of each the newest ${nodeVerdictsCountedMax} alerts`,
    ),
  total: z.int().describe('how many were found'),
  followed: z.object({ read: z.int(), of: z.int() }).describe('users, or devices, with links'),
  complete: z.boolean().describe('false: there may be more, of users or devices seen earlier'),
  sessions_searched: z
    .boolean()
    .describe('false: sessions in common were not searched, or not all'),
})

const deviceSessionSchema = sessionSchema
  .extend({
    users: z.array(z.string()).describe(`users and accounts; at most ${sessionUsersShownMax}`),
    users_total: z.int(),
  })
  .meta({ id: 'DeviceSession' })

export const devicePageSchema = z.object({
  device: deviceSchema.extend({ sessions: z.array(deviceSessionSchema) }),
  alerts: alertsSchema,
})

export const userPageSchema = z.object({
  user: userSchema,
  sessions: z
    .array(sessionSchema.extend({ device_id: z.string() }).meta({ id: 'UserSession' }))
    .describe('most recent first, on the devices of this page'),
  alerts: alertsSchema,
})

export const searchQuery = z.strictObject({
  q: z
    .string()
    .trim()
    .min(1)
    .max(256)
    .refine((text) => !text.includes('\0'), 'must not contain NUL')
    .describe(
      'an id, or the beginning of the id of a tenant, an alert, a case, a device, a user or a ' +
        'phone; a case also by the whole id of its phone, or of a device or user of its alerts',
    ),
  tenant_id: tenantIdSchema.optional().describe('search in this tenant only'),
})

const foundKinds = [
  ...(['tenant', 'alert', 'case', 'delivery', 'event'] as const),
  ...(['device', 'user', 'session', 'phone'] as const),
] as const

export const searchSchema = z.object({
  data: z.array(
    z.object({
      kind: z.enum(foundKinds),
      tenant_id: z.string(),
      id: z.string(),
    }),
  ),
  partial: z
    .boolean()
    .describe('whether a store was not searched in time, or not every tenant was'),
})
