/** Steps with lists of events: pages, filters and cursors, and every way to name foreign data. */
import type { eventPageSchema } from '#shared/core/http/event-schemas.ts'
import { askAs, garble, oneOf, type Step } from './api-steps.ts'
import { toUnknown } from './compare-answers.ts'

type EventPage = ReturnType<typeof eventPageSchema.parse>

const route = 'GET /v1/di/events'
const toPath = (query: Record<string, string>) => `/v1/di/events?${new URLSearchParams(query)}`

/** All events of a device, or of the tenant: each of its own, and each once. */
const listEvents: Step = async (client, { pick, flags }) => {
  const { tenant } = client
  const device = flags[0] ? oneOf(tenant.deviceIds, pick) : null
  const query = device === null ? {} : { device_id: device }
  const request = { route, path: toPath({ ...query, limit: '500' }) }
  const answer = await client.call(request)
  if (answer.status !== 200) return client.expect(false, request, answer, 'is no list')
  const { data } = JSON.parse(answer.text) as EventPage
  const ids = data.map((event) => event.event_id)
  const own = new Set(tenant.eventIds)
  const isRight =
    new Set(ids).size === ids.length &&
    ids.every((id) => own.has(id)) &&
    data.every((event) => event.tenant_id === tenant.tenant_id) &&
    (device === null
      ? ids.length === Math.min(500, own.size)
      : ids.length > 0 && data.every((event) => event.device_id === device))
  client.expect(isRight, request, answer, `${ids.length} of ${own.size} events, or others`)
}

/** A device and a user that only another tenant has, as filters. */
const foreignEventFilter: Step = async (client, { pick, other }) => {
  const { tenant } = oneOf(client.others, other)
  const [name, foreign] = oneOf(
    [
      ['device_id', tenant.onlyDevice],
      ['user_id', `account-${tenant.mark}`],
    ] as const,
    pick,
  )
  const request = (id: string) => ({ route, path: toPath({ [name]: id }) })
  await client.probe(request, { foreign, unknown: toUnknown(foreign, pick) }, [200])
}

/** A cursor of another tenant for the same list. */
const foreignEventCursor: Step = async (client, { other }) => {
  const theirs = oneOf(client.others, other)
  const request = { route, path: toPath({ limit: '1' }) }
  const page = await askAs<EventPage>(client, theirs.tenant.public_api_key, request)
  if (page?.next_cursor == null) return
  await client.probe(
    (cursor) => ({ route, path: toPath({ limit: '1', cursor }) }),
    { foreign: page.next_cursor, unknown: garble(page.next_cursor) },
    [400],
  )
}

/** Each step with its weight. */
export const eventSteps: (readonly [weight: number, step: Step])[] = [
  [6, listEvents],
  [4, foreignEventFilter],
  [3, foreignEventCursor],
]
