/** Events in the answers of both APIs, and the cursors of their lists. */

import { z } from 'zod'
import { toIso } from '#shared/core/base/instants.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import type { EventFilter, EventPosition } from '#shared/core/telemetry/event-filters.ts'
import type { DecidedEvent } from './decided-event.ts'

/** What a cursor continues: by name and only what is given, so it outlives added filters. */
export function toEventScope(tenantId: string, filter: EventFilter): CursorScope {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  return { list: 'events', tenantId, filters: given.sort(([a], [b]) => (a < b ? -1 : 1)) }
}

/** The end of a search that stopped early has no event. */
const positionSchema = z.tuple([instantMsSchema, z.string().regex(/^[A-Za-z0-9_-]{0,64}$/)])

/** @throws Problem for a cursor of another list */
export function toEventPosition(scope: CursorScope, cursor: string): EventPosition {
  const [receivedAtMs, eventId] = decodeCursor(scope, cursor, positionSchema)
  return { receivedAtMs, eventId }
}

export const toEventCursor = (scope: CursorScope, { receivedAtMs, eventId }: EventPosition) =>
  encodeCursor(scope, [receivedAtMs, eventId])

/** An event and what was decided, as `eventSchema` has it. */
export function toEvent(event: DecidedEvent) {
  const { riskScore, action, reasons } = event.decided
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
    ...(event.appVersion === '' ? {} : { app_version: event.appVersion }),
    ...(event.osVersion === '' ? {} : { os_version: event.osVersion }),
    ...(event.deviceBrand === '' ? {} : { device_brand: event.deviceBrand }),
    ...(event.deviceModel === '' ? {} : { device_model: event.deviceModel }),
    connection: event.connection,
    received_at: toIso(event.receivedAtMs),
    ...(event.occurredAtMs === null ? {} : { occurred_at: toIso(event.occurredAtMs) }),
    rasp_score: event.raspScore,
    rasp_action: event.raspAction,
    risk_score: riskScore,
    action,
    flags: reasons.map(({ code }) => code),
    reasons,
    policy_version: event.policyVersion,
  }
}
