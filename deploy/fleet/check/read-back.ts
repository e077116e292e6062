/**
 * Reads device histories and alerts from the API as a tenant's backend does, page by page. A
 * response that does not match its documentation is an error, not a mismatch.
 */
import { z } from 'zod'
import type { Get } from '../send/http-calls.ts'

const instant = z.iso.datetime()

const sessionSchema = z.looseObject({
  session_id: z.string(),
  rasp_action: z.string(),
  rasp_score: z.number(),
  started_at: instant,
  last_seen_at: instant,
  flags: z.array(z.string()),
})

const historySchema = z.looseObject({
  device_id: z.string(),
  first_seen_at: instant,
  last_seen_at: instant,
  peak_rasp_score: z.number(),
  users_seen_on: z.array(z.string()),
  sessions: z.array(sessionSchema),
  sessions_total: z.number(),
  sessions_cursor: z.string().nullish(),
})

const reasonSchema = z.looseObject({
  code: z.string(),
  weight: z.number(),
  evidence: z.record(z.string(), z.unknown()),
})

const alertSchema = z.looseObject({
  alert_id: z.string(),
  seq: z.number(),
  decision: z.looseObject({ action: z.string(), severity: z.string(), risk_score: z.number() }),
  rasp_score: z.number(),
  entity: z.looseObject({
    device: z.looseObject({ device_id: z.string() }),
    session: z.looseObject({ session_id: z.string() }),
    user: z.looseObject({ user_id: z.string() }).optional(),
  }),
  flags: z.array(z.string()),
  reasons: z.array(reasonSchema),
  disposition: z.string(),
  created_at: instant,
})

const alertPageSchema = z.looseObject({
  data: z.array(alertSchema),
  total: z.number(),
  limit: z.number(),
  next_cursor: z.string().nullable(),
})

export type SessionSummary = z.infer<typeof sessionSchema>
export type DeviceHistory = z.infer<typeof historySchema>
export type ListedAlert = z.infer<typeof alertSchema>

/** A response that does not match the documentation. */
export class ApiAnswerError extends Error {
  constructor(path: string, detail: string) {
    super(`GET ${path}: ${detail}`)
    this.name = 'ApiAnswerError'
  }
}

const sessionPagesMax = 1_000

/**
 * A device's history with all of its sessions, or null when the device is not known.
 * @throws ApiAnswerError for any answer but a documented one
 */
export async function readHistory(get: Get, deviceId: string): Promise<DeviceHistory | null> {
  const path = `/v1/di/devices/${encodeURIComponent(deviceId)}`
  const first = await readHistoryPage(get, path)
  let cursor = first?.sessions_cursor
  if (first === null) return null
  for (let page = 1; cursor && page < sessionPagesMax; page++) {
    const at = `${path}?sessions_cursor=${encodeURIComponent(cursor)}`
    const more = await readHistoryPage(get, at)
    first.sessions.push(...(more?.sessions ?? []))
    cursor = more?.sessions_cursor
  }
  return first
}

/** The newest sessions of a device, which a probe reads repeatedly. */
export async function readNewestSessions(
  get: Get,
  deviceId: string,
  sessions: number,
  signal: AbortSignal,
): Promise<DeviceHistory | null> {
  const path = `/v1/di/devices/${encodeURIComponent(deviceId)}?sessions_limit=${sessions}`
  return readHistoryPage(get, path, signal)
}

async function readHistoryPage(
  get: Get,
  path: string,
  signal?: AbortSignal,
): Promise<DeviceHistory | null> {
  const answer = await get(path, signal)
  if (answer.status === 404) return null
  return parse(historySchema, path, answer)
}

export type AlertList = { alerts: ListedAlert[]; total: number }

const alertsPerPage = 500

/**
 * All alerts that match, newest first, page by page.
 * @param filters query parameters beside `limit` and `cursor`
 */
export async function readAlerts(
  get: Get,
  filters: Record<string, string> = {},
): Promise<AlertList> {
  const alerts: ListedAlert[] = []
  let cursor: string | null = null
  for (;;) {
    const query = new URLSearchParams({ ...filters, limit: String(alertsPerPage) })
    if (cursor !== null) query.set('cursor', cursor)
    const page: z.infer<typeof alertPageSchema> = await readAlertPage(get, query)
    alerts.push(...page.data)
    cursor = page.next_cursor
    if (cursor === null) return { alerts, total: page.total }
    if (page.data.length === 0) {
      throw new ApiAnswerError('/v1/di/alerts', 'an empty page with a next_cursor')
    }
  }
}

/** How many alerts match, without reading them. */
export async function countAlerts(get: Get, filters: Record<string, string> = {}): Promise<number> {
  const query = new URLSearchParams({ ...filters, limit: '1' })
  return (await readAlertPage(get, query)).total
}

async function readAlertPage(get: Get, query: URLSearchParams) {
  const path = `/v1/di/alerts?${query.toString()}`
  return parse(alertPageSchema, path, await get(path))
}

function parse<Schema extends z.ZodType>(
  schema: Schema,
  path: string,
  answer: { status: number; json: unknown },
): z.output<Schema> {
  if (answer.status !== 200) throw new ApiAnswerError(path, `HTTP ${answer.status}`)
  const parsed = schema.safeParse(answer.json)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw new ApiAnswerError(path, `${issue?.path.join('.')} ${issue?.message}`)
}
