/** The usual mistakes in calls of the REST API, in the order in which an integrator meets them. */
import type { Mistake } from './mistake.ts'

/** What right calls of a tenant are made of. */
export type RightCall = {
  /** Reads. */
  key: string
  /** Has the scopes `alerts:write` and `lists:write`. */
  writer: string
  /** Retired. */
  oldKey: string
  hmacSecret: string
  alertId: string
  /** Of the tenant's list of BLOCK alerts. */
  cursor: string
}

type CallMistake = Mistake<RightCall>
type Answer = [status: number, code: string, ...says: string[]]

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const json = { 'content-type': 'application/json' }

const mistake = (
  name: string,
  make: CallMistake['make'],
  [status, code, ...says]: Answer,
): CallMistake => ({ name, make, status, code, says })

const alerts = '/v1/di/alerts'

/** A list of alerts with other headers. */
const unauthorized = (name: string, toHeaders: (right: RightCall) => Record<string, string>) =>
  mistake(name, (right) => ({ path: alerts, headers: toHeaders(right) }), [
    401,
    'unauthorized',
    'Authorization: Bearer',
    'dpk_live_ or dpk_sandbox_',
  ])

/** A call of the reading key. */
const get = (name: string, toPath: string | ((right: RightCall) => string), ...answer: Answer) =>
  mistake(
    name,
    (right) => ({
      path: typeof toPath === 'string' ? toPath : toPath(right),
      headers: bearer(right.key),
    }),
    answer,
  )

/** A list of alerts with this query. */
const query = (name: string, text: string | ((right: RightCall) => string), ...says: string[]) =>
  get(
    name,
    (right) => `${alerts}?${typeof text === 'string' ? text : text(right)}`,
    400,
    'invalid_query',
    ...says,
  )

/** A disposition of the tenant's alert by the writing key. */
const disposition = (
  name: string,
  body: string | object,
  answer: Answer,
  { headers = json }: { headers?: Record<string, string> } = {},
) =>
  mistake(
    name,
    ({ writer, alertId }) => ({
      method: 'POST',
      path: `${alerts}/${alertId}/disposition`,
      headers: { ...bearer(writer), ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }),
    answer,
  )

const badBody = (name: string, body: string | object, ...says: string[]) =>
  disposition(name, body, [400, 'invalid_body', ...says])

const keys: CallMistake[] = [
  unauthorized('no key', () => ({})),
  unauthorized('Basic', ({ key }) => ({
    authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
  })),
  unauthorized('the key without Bearer', ({ key }) => ({ authorization: key })),
  unauthorized('X-Api-Key', ({ key }) => ({ 'x-api-key': key })),
  unauthorized('the HMAC secret', ({ hmacSecret }) => bearer(hmacSecret)),
  unauthorized('a cut key', ({ key }) => bearer(key.slice(0, -1))),
  unauthorized('a key in quotes', ({ key }) => bearer(`"${key}"`)),
  unauthorized('the prefix of the other environment', ({ key }) =>
    bearer(key.replace('dpk_live_', 'dpk_sandbox_')),
  ),
  unauthorized('a replaced key', ({ oldKey }) => bearer(oldKey)),
  mistake(
    'the key in the query',
    ({ key }) => ({ path: `${alerts}?api_key=${key}`, headers: {} }),
    [401, 'unauthorized', 'Authorization: Bearer'],
  ),
]

const addresses: CallMistake[] = [
  get('alert', '/v1/di/alert', 404, 'not_found', '/openapi.json'),
  get('no version', '/di/alerts', 404, 'not_found', '/openapi.json'),
  get('a slash at the end', `${alerts}/`, 400, 'invalid_path', 'alert_id must have at least'),
  get('devices without an id', '/v1/di/devices', 404, 'not_found', '/openapi.json'),
  mistake(
    'telemetry',
    ({ key }) => ({ method: 'POST', path: '/v1/rasp/ingest', headers: bearer(key), body: '{}' }),
    [404, 'not_found', 'Telemetry is sent to the address of ingest'],
  ),
  mistake(
    'a POST of filters',
    ({ key }) => ({
      method: 'POST',
      path: alerts,
      headers: { ...bearer(key), ...json },
      body: '{}',
    }),
    [405, 'method_not_allowed', 'GET'],
  ),
  mistake(
    'a GET of a disposition',
    ({ writer, alertId }) => ({
      path: `${alerts}/${alertId}/disposition`,
      headers: bearer(writer),
    }),
    [405, 'method_not_allowed', 'POST'],
  ),
]

const queries: CallMistake[] = [
  query('page', 'page=2', 'page is not a parameter of this call'),
  query('offset', 'offset=50', 'offset is not a parameter of this call', 'cursor'),
  query('deviceId', 'deviceId=a', 'deviceId is not a parameter of this call', 'device_id'),
  query('device', 'device=a', 'device is not a parameter of this call', 'device_id'),
  query('a parameter twice', 'decision=BLOCK&decision=REVIEW', 'decision must be given only once'),
  query('a limit that is no number', 'limit=all', 'limit must be a whole number from 1'),
  query('a limit of 0', 'limit=0', 'limit must be a whole number from 1'),
  query('a cursor of one’s own', 'cursor=2', 'cursor is not a cursor of this list'),
  query(
    'a cursor with other filters',
    ({ cursor }) => `decision=REVIEW&cursor=${cursor}`,
    'cursor is not a cursor of this list and these filters',
  ),
  query('an empty cursor', 'cursor=', 'cursor'),
  query('ALLOW', 'decision=ALLOW', 'decision must be one of REVIEW, BLOCK'),
  query('lower case', 'disposition=open', 'disposition must be one of OPEN, REVIEWED'),
  query('an unknown severity', 'severity=SEVERE', 'severity must be one of LOW, MEDIUM'),
  query('an unknown flag', 'flag=IS_ROOTED', 'flag must be one of'),
  query('values with spaces', 'decision=REVIEW,%20BLOCK', 'decision must be one of REVIEW, BLOCK'),
  query('a score above 100', 'min_score=101', 'min_score must be a whole number from 0 to 100'),
  query('a score as a fraction', 'min_score=0.8', 'min_score must be a whole number from 0 to 100'),
  query('a word as a date', 'from=yesterday', 'from must be an ISO-8601'),
  query('seconds since 1970', 'from=1764086400', 'from must be an ISO-8601'),
  query('a time without an offset', 'from=2026-11-25T10:00:00', 'from must be an ISO-8601'),
  query('a day that does not exist', 'to=2026-02-30', 'to must be an ISO-8601'),
  query('an empty id', 'device_id=', 'device_id must have at least 1 character'),
  query('a broken escape', 'device_id=100%', 'device_id is not percent-encoded UTF-8'),
]

const ids: CallMistake[] = [
  get('the id of an event as an alert', `${alerts}/evt_abc`, 404, 'alert_not_found', 'alr_'),
  get('a number as an alert', `${alerts}/17`, 404, 'alert_not_found', 'alr_'),
  get(
    'the id of an alert as an event',
    ({ alertId }) => `/v1/di/events/${alertId}`,
    404,
    'event_not_found',
    'evt_',
  ),
  get(
    'an unknown device',
    '/v1/di/devices/unknown-device',
    404,
    'device_not_found',
    'of this device',
  ),
  get('an unknown user', '/v1/di/users/unknown-user', 404, 'user_not_found', 'of this user'),
]

const bodies: CallMistake[] = [
  mistake(
    'a key that only reads',
    ({ key, alertId }) => ({
      method: 'POST',
      path: `${alerts}/${alertId}/disposition`,
      headers: { ...bearer(key), ...json },
      body: '{"disposition":"CONFIRMED"}',
    }),
    [403, 'scope_missing', 'the scope alerts:write', 'An operator'],
  ),
  badBody('no disposition', {}, '$.disposition must be one of OPEN'),
  badBody('status', { status: 'CONFIRMED' }, '$.disposition must be one of OPEN', '$.status'),
  badBody(
    'an unknown disposition',
    { disposition: 'CLOSED' },
    '$.disposition must be one of OPEN, REVIEWED, FALSE_POSITIVE, CONFIRMED',
  ),
  badBody('a number as a note', { disposition: 'CONFIRMED', note: 7 }, '$.note must be a string'),
  badBody(
    'a long note',
    { disposition: 'CONFIRMED', note: 'x'.repeat(5_000) },
    '$.note must have at most 2000 characters',
  ),
  // test/unit/http/validate-requests.test.ts has every way in which a body can be broken.
  badBody(
    'a body that is not JSON',
    '{disposition:CONFIRMED}',
    '$ is not valid JSON at byte 1 of 23, counted from 0',
  ),
  badBody('no body', '', 'JSON'),
  disposition(
    'a form',
    'disposition=CONFIRMED',
    [415, 'unsupported_media_type', 'application/json'],
    { headers: { 'content-type': 'application/x-www-form-urlencoded' } },
  ),
]

const entry = { list: 'deny', kind: 'device', id: 'phone-1', reason: 'chargeback' }

/** An entry of a list by the writing key, with other fields. */
const listEntry = (name: string, change: object, ...says: string[]) =>
  mistake(
    name,
    ({ writer }) => ({
      method: 'POST',
      path: '/v1/di/lists',
      headers: { ...bearer(writer), ...json },
      body: JSON.stringify({ ...entry, ...change }),
    }),
    [400, 'invalid_body', ...says],
  )

const lists: CallMistake[] = [
  listEntry('another name of a list', { list: 'block' }, '$.list must be one of allow, deny'),
  listEntry(
    'device_id',
    { id: undefined, device_id: 'phone-1' },
    '$.id is missing',
    '$.device_id is not a field of this object',
  ),
  listEntry('a placeholder', { id: 'unknown' }, '$.id is a placeholder'),
  listEntry('another kind', { kind: 'ip' }, '$.kind must be one of device, user, network, asn,'),
  listEntry(
    'an address with the prefix of its network',
    { kind: 'network', id: '8.8.8.8/24' },
    '$.id has bits behind its prefix; the network with this prefix is 8.8.8.0/24',
  ),
  listEntry(
    'the whole internet',
    { kind: 'network', id: '0.0.0.0/0' },
    '$.id is too wide: the widest network of IPv4 that can be listed is a /8',
  ),
  listEntry(
    'the network of an office behind its router',
    { kind: 'network', id: '192.168.1.0/24' },
    '$.id is in a private network, from which no connection is measured',
  ),
  listEntry(
    'a range of addresses',
    { kind: 'network', id: '8.8.8.0-8.8.8.255' },
    '$.id must be a network in CIDR notation, such as 8.8.8.0/24, or an address',
  ),
  listEntry(
    'the name of an operator',
    { kind: 'asn', id: 'Example Networks' },
    '$.id must be the number of an operator, from 1 to 4294967295, such as 64500 or AS64500',
  ),
  listEntry('a number', { kind: 'asn', id: 64_500 }, '$.id must be a string'),
  listEntry(
    'the name of a country',
    { kind: 'country', id: 'Germany' },
    '$.id must be the code of a country, ISO 3166-1 alpha-2, such as DE',
  ),
  listEntry('a code of no country', { kind: 'country', id: 'UK' }, '$.id must be the code of'),
  listEntry('a sentence as a reason', { reason: 'Charged back!' }, '$.reason must be a code'),
  listEntry(
    'an expiry without an offset',
    { expires_at: '2027-01-01T00:00:00' },
    '$.expires_at must be an ISO-8601 date, or date and time with its offset',
  ),
  mistake(
    'a device instead of an entry',
    ({ writer }) => ({ method: 'DELETE', path: '/v1/di/lists/phone-1', headers: bearer(writer) }),
    [400, 'invalid_path', 'entry_id must be lst_ and 22 characters'],
  ),
  mistake(
    'a sentence as an idempotency key',
    ({ writer }) => ({
      method: 'POST',
      path: '/v1/di/lists',
      headers: { ...bearer(writer), ...json, 'idempotency-key': 'first try' },
      body: JSON.stringify(entry),
    }),
    [400, 'idempotency_key_refused', '1 to 255 visible ASCII characters'],
  ),
]

export const apiMistakes: CallMistake[] = [
  ...keys,
  ...addresses,
  ...queries,
  ...ids,
  ...bodies,
  ...lists,
]
