/** One timeline of a device, a user or a phone. */
import { z } from 'zod'
import { timelineLimits } from '#shared/core/base/limits/entities.ts'
import { type TimelineKind, timelineKinds } from '#shared/core/devices/timeline.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { phoneParams } from '../phones/phone-schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import { deviceParams, userParams } from './entity-schemas.ts'
import {
  readTimeline,
  type TimelineDeps,
  type TimelineRead,
  type TimelineTarget,
} from './read-timeline.ts'
import {
  type TimelineAnswer,
  type TimelineQuery,
  timelineQuery,
  timelineSchema,
} from './timeline-schemas.ts'

export type TimelineRouteDeps = TimelineDeps & { limited: QueryLimiter }

/** Adds the routes. */
export function addTimelineRoutes(app: ConsoleApp, deps: TimelineRouteDeps): void {
  const read = deps.limited('timeline', timelineLimits, (query: TimelineRead) =>
    readTimeline(deps, query),
  )
  const answer = async (tenantId: string, target: TimelineTarget, query: TimelineQuery) => {
    await requireTenant(deps.postgres, tenantId)
    return toAnswer(read, { tenantId, target, query })
  }
  app.get(
    '/tenants/:tenant_id/devices/:device_id/timeline',
    {
      schema: {
        operationId: 'listDeviceTimeline',
        tags: ['Entities'],
        summary: 'What happened with a device, from every store in one order, newest first',
        params: deviceParams,
        querystring: timelineQuery,
        response: { 200: timelineSchema },
      },
    },
    ({ params: { tenant_id: tenantId, device_id: id }, query }) =>
      answer(tenantId, { kind: 'device', id }, query),
  )
  app.get(
    '/tenants/:tenant_id/users/:user_id/timeline',
    {
      schema: {
        operationId: 'listUserTimeline',
        tags: ['Entities'],
        summary: 'What happened with a user or account, from every store in one order',
        params: userParams,
        querystring: timelineQuery,
        response: { 200: timelineSchema },
      },
    },
    ({ params: { tenant_id: tenantId, user_id: id }, query }) =>
      answer(tenantId, { kind: 'user', id }, query),
  )
  app.get(
    '/tenants/:tenant_id/phones/:phone_id/timeline',
    {
      schema: {
        operationId: 'listPhoneTimeline',
        tags: ['Entities'],
        summary: 'What happened with the installs of a phone, from every store in one order',
        params: phoneParams,
        querystring: timelineQuery,
        problems: ['phone_not_found'],
        response: { 200: timelineSchema },
      },
    },
    ({ params: { tenant_id: tenantId, phone_id: id }, query }) =>
      answer(tenantId, { kind: 'phone', id }, query),
  )
}

/** Later than every entry. */
const endMs = Date.UTC(2299, 11, 31)
const positionSchema: z.ZodType<[number, TimelineKind, string]> = z.tuple([
  instantMsSchema,
  z.enum(timelineKinds),
  z.string(),
])

async function toAnswer(
  read: (query: TimelineRead) => ReturnType<typeof readTimeline>,
  { tenantId, target, query }: { tenantId: string; target: TimelineTarget; query: TimelineQuery },
): Promise<TimelineAnswer> {
  const { kinds = timelineKinds, from = 0, to = endMs, limit, cursor } = query
  const filters = [target.kind, target.id, kinds, from, to]
  const scope: CursorScope = { list: 'timeline', tenantId, filters }
  const position = cursor === undefined ? null : decodeCursor(scope, cursor, positionSchema)
  const after = position && { atMs: position[0], kind: position[1], id: position[2] }
  const span = { fromMs: Math.max(0, from), toMs: Math.min(endMs, to) }
  const page = await read({ tenantId, target, kinds, ...span, after, limit })
  const { next } = page
  return {
    data: page.entries.map(({ atMs: _, ...entry }) => entry),
    limit,
    next_cursor: next && encodeCursor(scope, [next.atMs, next.kind, next.id]),
    incomplete: page.incomplete,
  }
}
