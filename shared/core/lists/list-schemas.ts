/** The schemas of allow and deny lists, for the REST API and the admin API. */
import { z } from 'zod'
import { listPageDefault, listPageMax } from '#shared/core/base/limits/lists.ts'
import { cursorParameter, instantParameter, pageSize } from '#shared/core/http/api-schemas.ts'
import { instantSchema } from '#shared/core/http/field-schemas.ts'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import { findUnusual } from '#shared/core/telemetry/warnings/unusual-ids.ts'
import { isConnectionKind, type ListKind, listKinds, listNames } from './list-entry.ts'

const listSchema = z.enum(listNames, `must be one of ${listNames.join(', ')}`).meta({
  description:
    '`deny`: every event is BLOCK. `allow`: every event of a device or user is ALLOW and raises no alert; of a network, operator or country it decides nothing, and only the `connection` signals that the service sees count nothing. `deny` beats `allow`.',
})
const kindSchema = z.enum(listKinds, `must be one of ${listKinds.join(', ')}`).meta({
  description:
    'What the id is: a `device_id`; a `user_id` or `account_id`; or of the address that an event comes from its `network`, the number of its operator (`asn`), or its `country`. The last three have an effect where the edges have network data.',
})
const reasonSchema = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9_-]{0,39}$/,
    'must be a code of 1 to 40 lower-case letters, digits, hyphens and underscores',
  )
  .meta({
    description: 'Why, as a code. It is in the evidence of alerts and webhooks.',
    examples: ['chargeback', 'test_phone'],
  })

const entryFields = {
  entry_id: z.string(),
  list: listSchema,
  kind: kindSchema,
  id: z.string().meta({
    description: 'A network is in CIDR notation, an operator a number, a country two capitals.',
  }),
  reason: reasonSchema,
  expires_at: instantSchema.nullable().meta({ description: 'Null never expires.' }),
  expired: z.boolean().meta({
    description: 'An expired entry has no effect. It is removed within an hour or so.',
  }),
  created_at: instantSchema.meta({ description: 'When it was added, or last replaced.' }),
}

/** An entry as a tenant's key sees it: without the operator who made it. */
export const listEntrySchema = z
  .object(entryFields)
  .meta({ description: 'An entry of the allow or the deny list.' })
  .meta({ id: 'ListEntry' })

/** The answer to an addition. */
const warned = {
  warnings: z
    .array(z.string())
    .optional()
    .meta({ description: 'What is probably a slip in the id; left out where nothing is.' }),
}
export const addedListEntrySchema = listEntrySchema.extend(warned).meta({ id: 'AddedListEntry' })

/** What is probably a slip in an entry of a device or a user. */
export function toEntryWarnings({ kind, id }: { kind: ListKind; id: string }): {
  warnings?: string[]
} {
  const unusual = isConnectionKind(kind) ? null : findUnusual(id)
  return unusual === null ? {} : { warnings: [`The id ${unusual}.`] }
}

/** An entry as operators see it. */
export const adminListEntrySchema = z.object({
  ...entryFields,
  created_by: z.string().describe('an operator’s email, `admin`, or `api-key:` and its name'),
})

export const addedAdminEntrySchema = adminListEntrySchema.extend(warned)

/** The body that adds an entry. */
export const listEntryBody = z.strictObject({
  list: listSchema,
  kind: kindSchema,
  id: idSchema.meta({
    description:
      'No placeholder such as `unknown`. A network is in CIDR notation or an address, without bits behind its prefix, at most a /8 of IPv4 or a /16 of IPv6, and one of the internet, since no connection is measured from others. An operator is `64500` or `AS64500`, a country a code of ISO 3166-1 alpha-2. The answer has the one spelling that is kept.',
    examples: ['4f6c1d8e-device', '8.8.8.0/24', 'AS64500', 'DE'],
  }),
  reason: reasonSchema,
  expires_at: instantParameter(
    'The entry has no effect from this instant on, by the server’s clock. Null never expires. Left out, an entry that is replaced keeps its expiry, and a new one never expires; the answer says which.',
  ).nullable(),
})
export type ListEntryBody = z.output<typeof listEntryBody>

export const listEntryPath = z.object({
  entry_id: z
    .string()
    .regex(/^lst_[A-Za-z0-9_-]{22}$/, 'must be lst_ and 22 characters')
    .meta({ description: 'An `entry_id`.' }),
})

/** The query of a list of entries. */
export const listEntriesQuery = z.strictObject({
  list: listSchema.optional(),
  kind: kindSchema.optional(),
  id: idSchema.optional().meta({
    description: 'Entries of this device, user or connection; of a connection give its kind, too.',
  }),
  reason: reasonSchema.optional(),
  state: z
    .enum(['active', 'expired'], 'must be one of active, expired')
    .optional()
    .meta({ description: 'Entries that have an effect, or those that have expired.' }),
  limit: pageSize(listPageMax, listPageDefault, `Entries in the answer, at most ${listPageMax}.`),
  cursor: cursorParameter('`next_cursor` of the previous answer, with the same filters.'),
})
export type ListEntriesQuery = z.output<typeof listEntriesQuery>

export const toListPageSchema = <T extends z.ZodType>(entry: T) =>
  z.object({
    data: z.array(entry).meta({ description: 'Newest first.' }),
    total: z.int().min(0).meta({ description: 'How many entries match the filters.' }),
    limit: z.int().min(1).max(listPageMax),
    next_cursor: z.string().nullable(),
  })
