/** `GET /v1/di/events/{event_id}`: one accepted event with its score, action and reasons. */

import { z } from 'zod'
import { toIso } from '#shared/core/base/instants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { eventPathSchema, eventSchema } from '#shared/core/http/reading-schemas.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import type { EventStore, ScoredEvent } from '#shared/io/telemetry/event-store.ts'
import { eventExample } from '../openapi/examples.ts'

/** Adds the route. */
export function addEventRoutes(
  app: ZodApp,
  { findScoredEvent }: Pick<EventStore, 'findScoredEvent'>,
): void {
  app.get(
    '/v1/di/events/:event_id',
    {
      schema: {
        operationId: 'findEvent',
        conditional: true,
        tags: ['Events'],
        summary: 'One accepted event and why its score is what it is',
        description: 'An accepted event is visible here within a second.',
        params: eventPathSchema,
        querystring: z.strictObject({}),
        problems: ['event_not_found'],
        response: { 200: eventSchema },
        example: eventExample,
      },
    },
    async ({ params, caller: { tenantId } }) => {
      const event = await findScoredEvent({ tenantId, eventId: params.event_id }).catch(
        rejectUnavailable('Events cannot be read at the moment.'),
      )
      if (event !== null) return toEvent(event)
      throw new Problem(
        'event_not_found',
        'There is no such event, or not yet. Ids of events begin with evt_.',
      )
    },
  )
}

function toEvent(event: ScoredEvent) {
  return {
    event_id: event.eventId,
    tenant_id: event.tenantId,
    device_id: event.deviceId,
    session_id: event.sessionId,
    ...(event.userId === null ? {} : { user_id: event.userId }),
    ...(event.accountId === null ? {} : { account_id: event.accountId }),
    sdk_meta: {
      sdk_version: event.sdkVersion,
      platform: event.platform,
      batch_type: event.batchType,
    },
    received_at: toIso(event.receivedAtMs),
    rasp_score: event.raspScore,
    rasp_action: event.raspAction,
    flags: event.flags,
    reasons: event.reasons ?? [],
    policy_version: event.policyVersion,
  }
}
