// What a caller of an address that does not exist meant.
import { describe, expect, test } from 'vitest'
import { findNearestRoute } from '#shared/core/http/nearest-route.ts'

const routes = [
  { methods: ['GET'], url: '/openapi.json' },
  { methods: ['GET'], url: '/v1/di/alerts' },
  { methods: ['GET'], url: '/v1/di/alerts/:alert_id' },
  { methods: ['POST'], url: '/v1/di/alerts/dispositions' },
  { methods: ['POST'], url: '/v1/di/alerts/:alert_id/disposition' },
  { methods: ['GET'], url: '/v1/di/devices/:device_id' },
  { methods: ['GET'], url: '/v1/di/events/:event_id' },
  { methods: ['GET', 'POST'], url: '/v1/di/lists' },
  { methods: ['DELETE'], url: '/v1/di/lists/:entry_id' },
]

describe('the nearest route', () => {
  test.each([
    ['GET', '/v1/di/alert', 'GET /v1/di/alerts'],
    ['GET', '/v1/di/alerts/', 'GET /v1/di/alerts'],
    ['GET', '//v1/di/alerts', 'GET /v1/di/alerts'],
    ['GET', '/v1/alerts', 'GET /v1/di/alerts'],
    ['GET', '/alerts', 'GET /v1/di/alerts'],
    ['GET', '/V1/DI/Alerts', 'GET /v1/di/alerts'],
    ['GET', '/v1/di/alerts/alr_1/notes', 'GET /v1/di/alerts/{alert_id}'],
    ['POST', '/v1/di/alerts/alr_1/dispositions', 'POST /v1/di/alerts/{alert_id}/disposition'],
    ['PATCH', '/v1/di/alerts/alr_1/dispositon', 'POST /v1/di/alerts/{alert_id}/disposition'],
    ['GET', '/v1/di/device/phone', 'GET /v1/di/devices/{device_id}'],
    ['DELETE', '/v1/di/list/lst_1', 'DELETE /v1/di/lists/{entry_id}'],
    ['POST', '/v1/di/list', 'POST /v1/di/lists'],
    ['GET', '/openapi', null],
    ['GET', '/v1/di', null],
    ['GET', '/v1/di/tenants/acme', null],
    ['GET', '/', null],
    ['GET', `/${'v1/'.repeat(9_000)}alerts`, null],
    ['GET', `/v1/di/${'alerts'.repeat(9_000)}`, null],
  ])('of %s %s', (method, path, nearest) => {
    expect(findNearestRoute({ method, path }, routes)).toBe(nearest)
  })
})
