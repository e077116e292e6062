/** When the signals of a device appeared, went and came back. */
import { z } from 'zod'
import { toIso } from '#shared/core/base/instants.ts'
import {
  changedEventsMax,
  signalChangeLimits,
  signalChangesMax,
  signalsOfDeviceMax,
} from '#shared/core/base/limits/entities.ts'
import { toSignalChanges } from '#shared/core/devices/signal-changes.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { SignalHistory, SignalHistoryStore } from '#shared/io/devices/signal-history-store.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import { deviceParams } from './entity-schemas.ts'

export type SignalChangeDeps = { postgres: Postgres; signalHistory: SignalHistoryStore }

const changesSchema = z.object({
  signals: z
    .array(
      z.object({
        signal: z.string(),
        first_detected_at: z.string(),
        first_session_id: z.string(),
        last_detected_at: z.string(),
        last_session_id: z.string(),
        state: z
          .enum(['detected', 'clean'])
          .nullable()
          .describe('when it was last measured; null where that is not kept'),
      }),
    )
    .describe(
      `boolean signals that were ever detected, by first detection, at most ${signalsOfDeviceMax}`,
    ),
  data: z
    .array(
      z.object({
        at: z.string(),
        signal: z.string(),
        change: z
          .enum(['appeared', 'went', 'returned'])
          .describe('went: it was measured clean after it was detected; of high grades alone'),
        event_id: z.string(),
        session_id: z.string(),
      }),
    )
    .describe(`changes, latest first, at most ${signalChangesMax}`),
  total: z.int().describe('how many changes were found'),
  complete_from: z
    .string()
    .nullable()
    .describe(
      `changes before this were not read beside the first of each signal, because more than ${changedEventsMax} events differ from the one before; null when all were read`,
    ),
})

export type SignalChanges = z.infer<typeof changesSchema>

type DeviceKey = { tenantId: string; deviceId: string }

const reject = rejectUnavailable('The changes of signals cannot be read at the moment.')

/** Adds the route. */
export function addSignalChangeRoute(
  app: ConsoleApp,
  { postgres, signalHistory, limited }: SignalChangeDeps & { limited: QueryLimiter },
): void {
  const read = limited('signal_changes', signalChangeLimits, (device: DeviceKey) =>
    signalHistory.readSignalHistory(device),
  )
  app.get(
    '/tenants/:tenant_id/devices/:device_id/signal-changes',
    {
      schema: {
        operationId: 'listSignalChanges',
        tags: ['Entities'],
        summary: "When a device's signals appeared, went and came back, and in which session",
        params: deviceParams,
        response: { 200: changesSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, device_id: deviceId } }) => {
      await requireTenant(postgres, tenantId)
      return toAnswer(await read({ tenantId, deviceId }).catch(reject))
    },
  )
}

function toAnswer({ spans, events, complete }: SignalHistory): SignalChanges {
  const { changes, total, states } = toSignalChanges(spans, events)
  return {
    signals: spans.map((span) => ({
      signal: span.signal,
      first_detected_at: toIso(span.firstAtMs),
      first_session_id: span.firstSessionId,
      last_detected_at: toIso(span.lastAtMs),
      last_session_id: span.lastSessionId,
      state: states.get(span.signal) ?? null,
    })),
    data: changes.map(({ atMs, signal, change, eventId, sessionId }) => {
      return { at: toIso(atMs), signal, change, event_id: eventId, session_id: sessionId }
    }),
    total,
    complete_from: complete || events[0] === undefined ? null : toIso(events[0].atMs),
  }
}
