/** The tenant's allow and deny lists: list and filter, add, remove. */
import { z } from 'zod'
import { callsPerChange } from '#shared/core/base/limits/rest-api.ts'
import {
  addedListEntrySchema,
  listEntriesQuery,
  listEntryBody,
  listEntryPath,
  listEntrySchema,
  toEntryWarnings,
  toListPageSchema,
} from '#shared/core/lists/list-schemas.ts'
import { readOnceCall, sendOnce } from '#shared/io/http/idempotency.ts'
import type { OnceAnswer, OnceCall } from '#shared/io/http/idempotent-answers.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import type { createKeyedLists, NewEntry } from '#shared/io/lists/change-lists.ts'
import type { ListEntryView } from '#shared/io/lists/list-store.ts'
import { requireScope } from '../http/authenticate.ts'
import { listEntryExample, newListEntryExample } from '../openapi/examples.ts'

/** A new entry by a key of the tenant. */
export type KeyedEntry = Omit<NewEntry, 'nowMs'> & {
  /** Set for a call with an `Idempotency-Key`. */
  once: OnceCall | null
}

type ListRouteDeps = Omit<ReturnType<typeof createKeyedLists>, 'addEntry'> & {
  /** Answers once for an `Idempotency-Key`. */
  addEntry: (wanted: KeyedEntry) => Promise<OnceAnswer<ListEntryView>>
}

/** Keys do not see which operator made an entry. */
const toShown = ({ created_by: _, ...entry }: ListEntryView) => entry

const scopeNote =
  'Needs a key with the scope `lists:write`. Every edge acts on the change within a second. A call counts as 20 calls of the tenant’s rate.'

/** Adds the routes. */
export function addListRoutes(app: ZodApp, deps: ListRouteDeps): void {
  app.get(
    '/v1/di/lists',
    {
      schema: {
        operationId: 'listListEntries',
        tags: ['Lists'],
        summary: 'List and filter the entries of the allow and deny lists',
        description:
          'Newest first. Every 50 entries of a page count as one call of the tenant’s rate.',
        querystring: listEntriesQuery,
        response: { 200: toListPageSchema(listEntrySchema) },
        example: { data: [listEntryExample], total: 1, limit: 50, next_cursor: null },
      },
    },
    async ({ query, caller: { tenantId, chargeRows } }) => {
      const page = await deps.listEntries({ tenantId, query })
      chargeRows(page.data.length)
      return { ...page, data: page.data.map(toShown) }
    },
  )
  app.post(
    '/v1/di/lists',
    {
      config: { calls: callsPerChange },
      schema: {
        operationId: 'addListEntry',
        idempotency: 'kept',
        tags: ['Lists'],
        summary: 'Put a device, a user or a connection on the allow or the deny list',
        description: `${scopeNote} The next events of a denied device or user are \`BLOCK\` with the flag \`DENY_LISTED\` and a risk score of 100; those of an allowed one are \`ALLOW\` with the flag \`ALLOW_LISTED\` and a risk score of 0, and raise no alert. So are those from a denied network, operator (\`asn\`) or country, by the address that the service sees. An allowed one decides nothing: the event has the flag \`CONNECTION_ALLOWED\`, and what the service saw of its connection counts nothing, as for the company’s own office. Deny beats allow, whatever is listed. \`rasp_score\` stays what the signals give, and the test devices of a sandbox keep the action that their id forces. An entry of the same id on the same list is replaced and keeps its \`entry_id\`, so a repeat is safe. With an \`Idempotency-Key\` a repeat also does not add again what was removed meanwhile.`,
        querystring: z.strictObject({}),
        body: listEntryBody,
        bodyExample: newListEntryExample,
        problems: ['scope_missing', 'conflict', 'approval_required'],
        response: { 201: addedListEntrySchema },
        example: listEntryExample,
      },
    },
    async (request, reply) => {
      const { body, caller } = request
      requireScope(caller, 'lists:write')
      const { tenantId, keyHash, keyName } = caller
      const actor = `api-key:${keyName}`
      const once = readOnceCall(request, { tenantId, actor })
      const added = await deps.addEntry({ tenantId, keyHash, entry: body, actor, once })
      const entry = toShown(sendOnce(reply, added))
      return reply.code(201).send({ ...entry, ...toEntryWarnings(entry) })
    },
  )
  app.delete(
    '/v1/di/lists/:entry_id',
    {
      config: { calls: callsPerChange },
      schema: {
        operationId: 'removeListEntry',
        tags: ['Lists'],
        summary: 'Remove an entry from its list',
        description: `${scopeNote} The answer is the entry as it was.`,
        params: listEntryPath,
        querystring: z.strictObject({}),
        problems: ['list_entry_not_found', 'scope_missing'],
        response: { 200: listEntrySchema },
        example: listEntryExample,
      },
    },
    async ({ params, caller }) => {
      requireScope(caller, 'lists:write')
      const { tenantId, keyHash, keyName } = caller
      const wanted = { tenantId, keyHash, entryId: params.entry_id, actor: `api-key:${keyName}` }
      return toShown(await deps.removeEntry(wanted))
    },
  )
}
