/**
 * Saved views: filters of a page under a name, kept on the server. `query` is what the page puts
 * into its address, as texts; of `sql` it is `{"sql": "select …"}`. A view is its owner's alone
 * until it is shared with all who may see the tenant; only the owner, or an admin, removes it.
 * Saving under a name that the owner has already replaces that view.
 */
import { z } from 'zod'
import {
  savedViewCharactersMax,
  savedViewNameCharactersMax,
} from '#shared/core/base/limits/alerts.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'

const savedViewKinds = ['cases', 'alerts', 'events', 'sql'] as const

const viewText = operatorText(savedViewCharactersMax)
const fields = {
  kind: z.enum(savedViewKinds).describe('the page that it is a view of'),
  name: operatorText(savedViewNameCharactersMax).refine((text) => text !== '', 'must not be empty'),
  query: z
    .record(operatorText(64), viewText)
    .refine(
      (query) => JSON.stringify(query).length <= savedViewCharactersMax,
      `must have at most ${savedViewCharactersMax} characters as JSON`,
    )
    .describe('parameters of the page as texts, such as {"state": "OPEN", "sort": "risk"}'),
  shared: z.boolean().describe('whether all who may see the tenant see it'),
}

export const savedViewBody = z.strictObject({ ...fields, shared: fields.shared.default(false) })
export type SavedViewBody = z.output<typeof savedViewBody>

export const savedViewSchema = z
  .object({
    view_id: z.string(),
    kind: z.enum(savedViewKinds),
    name: z.string(),
    query: z.record(z.string(), z.string()),
    shared: z.boolean(),
    owner: z.string().describe('an operator’s email, or `admin`'),
    own: z.boolean().describe('whether it is yours'),
    updated_at: z.string(),
  })
  .meta({ id: 'SavedView' })
export type SavedView = z.output<typeof savedViewSchema>

export const savedViewsSchema = z.object({
  data: z.array(savedViewSchema).describe('yours, and those that others share, by name'),
})
export const savedViewsQuery = z.strictObject({ kind: z.enum(savedViewKinds).optional() })
export const savedViewPath = z.object({
  view_id: z.string().regex(/^viw_[A-Za-z0-9_-]{22}$/, 'must be viw_ and 22 characters'),
})
