// Every endpoint of the admin API against the table of roles: each is called with each role, with
// and without a step-up, in and outside the operator's tenants, with the admin token and without
// credentials.
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EndpointAccess, endpointAccess, roles } from '#shared/core/operators/roles.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { addAuthentication } from '../../../services/console/operators/authenticate.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import {
  createOperatorsRig,
  type Member,
  type OperatorsRig,
} from '../../support/http/operators-rig.ts'
import { describeFourEyes } from './four-eyes.ts'
import { describeQueue } from './queue.ts'

let rig: OperatorsRig
/** Members by role, for all tenants and for `acme` only. */
let ofAll: Record<string, Member>
let ofAcme: Record<string, Member>

beforeAll(async () => {
  rig = await createOperatorsRig()
  for (const tenant_id of ['acme', 'globex']) {
    await rig.must(201, 'POST', '/tenants', { token: rig.adminToken, body: { tenant_id } })
  }
  const join = async (tenants: 'all' | string[]) => {
    const members: Record<string, Member> = {}
    for (const role of roles) members[role] = await rig.join(role, tenants)
    return members
  }
  ofAll = await join('all')
  ofAcme = await join(['acme'])
})
afterAll(() => rig?.close())

const endpoints = Object.entries(endpointAccess).map(([name, access]) => {
  const [method, path] = name.split(' ') as [string, string]
  return { name, method, path, access }
})

/** A path of the endpoint whose ids do not exist, except the tenant. */
const toPath = (path: string, tenant = 'acme') =>
  path
    .replace(':tenant_id', tenant)
    .replaceAll(/:\w+/g, 'none')
    // A stream does not end, so it gets a parameter that it rejects.
    .replace(/\/stream$/, '/stream?no_endpoint=takes-this')

/** A body that no endpoint accepts, so that an allowed call changes nothing. */
const body = { no_endpoint: 'takes this' }

async function tryAs(
  member: Member,
  { method, path }: { method: string; path: string },
  more: { steppedUp?: boolean; tenant?: string } = {},
) {
  // A session each, because sign-out is one of the endpoints.
  const cookie = await rig.openSession(member.operatorId, more)
  const of = method === 'GET' || method === 'DELETE' ? { cookie } : { cookie, body }
  const { status, body: answer } = await rig.call(method, toPath(path, more.tenant), of)
  return { status, code: answer?.code ?? null }
}

/** The verdict of the check before the routes, `allowed` when it passes the call. */
function toVerdict({ status, code }: { status: number; code: string | null }): string {
  const refusals = ['unauthorized', 'forbidden', 'step_up_required', 'origin_refused']
  if (status === 401 || status === 403) return refusals.includes(code ?? '') ? code! : 'allowed'
  return code === 'tenant_not_found' ? code : 'allowed'
}

/** The expected verdict by the requirements. */
function expectVerdict(access: EndpointAccess, role: (typeof roles)[number], steppedUp: boolean) {
  if (access.who === 'public') return 'allowed'
  if (access.who !== 'session' && roles.indexOf(role) < roles.indexOf(access.who)) {
    return 'forbidden'
  }
  return access.stepUp === true && !steppedUp ? 'step_up_required' : 'allowed'
}

describe('the table of roles', () => {
  it('describes each role', () => {
    const leastOf = (name: string) => endpointAccess[name]
    const of = (names: string[]) => names.map((name) => leastOf(name)?.who)
    const tenant = '/tenants/:tenant_id'
    expect(of([`GET ${tenant}`, `GET ${tenant}/audit`, 'GET /tenants'])).toEqual(
      Array(3).fill('viewer'),
    )
    expect(of(['POST /alerts/:alert_id/disposition'])).toEqual(['analyst'])
    const ofEngineers = [
      ...[`PUT ${tenant}/policy/shadow`, `POST ${tenant}/policy/backtest`, `PUT ${tenant}/webhook`],
      ...[`POST ${tenant}/deliveries/replay`, `POST ${tenant}/webhook/pause`],
    ]
    expect(of(ofEngineers)).toEqual(Array(ofEngineers.length).fill('engineer'))
    const withStepUp = [
      ...[`POST ${tenant}/rotate`, `PUT ${tenant}/policy`, `POST ${tenant}/erasures`],
      ...[`POST ${tenant}/analysts`, `DELETE ${tenant}/analysts/:name`],
      ...['PATCH /operators/:operator_id', 'POST /operators/invitations'],
    ]
    for (const name of withStepUp)
      expect(leastOf(name), name).toMatchObject({ who: 'admin', stepUp: true })
    const ofAdmins = ['POST /tenants', `PUT ${tenant}/retention`, `POST ${tenant}/suspend`]
    expect(of(ofAdmins)).toEqual(Array(3).fill('admin'))
  })

  it('allows no change by a read-only role', () => {
    const changing = endpoints.filter(({ method, access }) => {
      return method !== 'GET' && access.who === 'viewer'
    })
    expect(changing).toEqual([])
  })

  it('prevents the registration of a route without an entry', async () => {
    const app = Fastify()
    addAuthentication(app, '', { ...rig.deps, token: { check: async () => {} } } as never)
    app.get('/edges', async () => 'has one')
    expect(() => app.get('/new-thing', async () => 'has none')).toThrow(
      'roles.ts has no entry for GET /new-thing',
    )
    await app.close()
  })

  it.each(roles)('matches the behaviour of every endpoint for the role %s', async (role) => {
    const wrong: string[] = []
    for (const { name, access, ...endpoint } of endpoints) {
      for (const steppedUp of [false, true]) {
        const answer = await tryAs(ofAll[role]!, endpoint, { steppedUp })
        const expected = expectVerdict(access, role, steppedUp)
        const verdict = toVerdict(answer)
        if (verdict !== expected) {
          wrong.push(`${name}: ${verdict} (${answer.status}), not ${expected}`)
        }
        if (answer.status >= 500) wrong.push(`${name}: ${answer.status} ${answer.code}`)
      }
    }
    expect(wrong.filter((one) => !one.includes('503 unavailable'))).toEqual([])
  })

  it.each(roles)('hides other tenants from the role %s', async (role) => {
    const wrong: string[] = []
    for (const { name, access, ...endpoint } of endpoints) {
      if (!endpoint.path.includes(':tenant_id')) continue
      const within = expectVerdict(access, role, true)
      const inside = toVerdict(await tryAs(ofAcme[role]!, endpoint, { steppedUp: true }))
      if (inside !== within) wrong.push(`${name} of acme: ${inside}, not ${within}`)
      const expected = within === 'allowed' ? 'tenant_not_found' : within
      for (const steppedUp of [false, true]) {
        const more = { steppedUp, tenant: 'globex' }
        const outside = toVerdict(await tryAs(ofAcme[role]!, endpoint, more))
        if (outside !== expected) wrong.push(`${name} of globex: ${outside}, not ${expected}`)
      }
    }
    expect(wrong).toEqual([])
  })

  it('denies functions for all tenants to administrators of some', async () => {
    const wide = endpoints.filter(({ access }) => 'allTenants' in access)
    expect(wide.map(({ name }) => name)).toEqual([
      'GET /operators',
      'PATCH /operators/:operator_id',
      'POST /operators/:operator_id/reset',
      'GET /operators/invitations',
      'POST /operators/invitations',
      'POST /operators/invitations/withdraw',
      'GET /second-factor',
      'PUT /second-factor',
      'GET /audit',
      'GET /edges',
      'POST /secrets/rewrap',
      'POST /verdict-keys/rotate',
      'GET /recovery',
      'POST /recovery',
      'POST /tenants',
    ])
    for (const endpoint of wide) {
      const answer = await tryAs(ofAcme.admin!, endpoint, { steppedUp: true })
      expect(answer.code, endpoint.name).toBe('forbidden')
    }
  })

  it('names as assignees the operators who may judge and see the tenant', async () => {
    const token = { token: rig.adminToken }
    const listed = async (tenant: string): Promise<string[]> => {
      const { body: answer } = await rig.must(200, 'GET', `/tenants/${tenant}/assignees`, token)
      return answer.data.map((one: { email: string }) => one.email)
    }
    // Others join in other tests.
    const members = [...Object.values(ofAll), ...Object.values(ofAcme)]
    const known = async (tenant: string) => {
      const emails = await listed(tenant)
      return members.filter(({ email }) => emails.includes(email))
    }
    const judges = ({ analyst, engineer, admin }: Record<string, Member>) =>
      [analyst, engineer, admin] as const
    expect(new Set(await known('acme'))).toEqual(new Set([...judges(ofAll), ...judges(ofAcme)]))
    expect(new Set(await known('globex'))).toEqual(new Set(judges(ofAll)))
    const { email, operatorId } = await rig.join('analyst', 'all')
    expect(await listed('globex')).toContain(email)
    const change = { ...token, body: { disabled: true } }
    await rig.must(200, 'PATCH', `/operators/${operatorId}`, change)
    expect(await listed('globex')).not.toContain(email)
  })

  it('gives nothing to callers without credentials', async () => {
    for (const { name, method, path, access } of endpoints) {
      if (access.who === 'public') continue
      for (const cookie of [undefined, '', 'x', 'A'.repeat(43), '\u0000']) {
        const answer = await rig.call(method, toPath(path), { cookie })
        expect(answer.status, name).toBe(401)
        expect(answer.headers['www-authenticate']).toBe('Bearer')
      }
    }
  })

  it('gives the admin token everything but a session', async () => {
    for (const { name, method, path, access } of endpoints) {
      const of = { token: rig.adminToken, ...(method === 'GET' ? {} : { body }) }
      const { status, body: answer } = await rig.call(method, toPath(path), of)
      const verdict = toVerdict({ status, code: answer?.code ?? null })
      expect(verdict, name).toBe(access.who === 'session' ? 'unauthorized' : 'allowed')
    }
  })
})

describe('an endpoint without a tenant in its path', () => {
  it('is still limited to the tenants of the operator', async () => {
    const cookie = await rig.openSession(ofAcme.analyst!.operatorId)
    const listed = await rig.must(200, 'GET', '/tenants', { cookie })
    expect(listed.body.data.map((one) => one.tenant_id)).toEqual(['acme'])
    expect(listed.body.total).toBe(1)
    const ofEvery = await rig.openSession(ofAll.viewer!.operatorId)
    const all = await rig.must(200, 'GET', '/tenants', { cookie: ofEvery })
    expect(all.body.total).toBe(2)
  })

  it('shows the revisions of all tenants to nobody who sees only some of them', async () => {
    const statusOf = async ({ operatorId }: Member) =>
      (await rig.call('GET', '/edges', { cookie: await rig.openSession(operatorId) })).status
    expect(await statusOf(ofAcme.admin!)).toBe(403)
    expect(await statusOf(ofAll.viewer!)).toBe(200)
  })

  it('hides another tenant’s alert and event like unknown ones', async () => {
    const foreign = makeAlertCandidate({ tenantId: 'globex', sessionId: 'hidden' })
    await raiseAlerts(rig.postgres, [foreign])
    const app = await rig.createApp({
      findEvent: async (eventId) => ({ eventId, tenantId: 'globex' }) as never,
    })
    const cookie = await rig.openSession(ofAcme.analyst!.operatorId)
    for (const [method, tail, body] of [
      ['GET', ''],
      ['POST', '/disposition', { disposition: 'CONFIRMED' }],
      ['PUT', '/assignee', { assignee: 'eve@example.com' }],
      ['POST', '/notes', { note: 'mine' }],
    ] as const) {
      const path = `/alerts/${foreign.alertId}${tail}`
      const hidden = await rig.must(404, method, path, { cookie, ...(body && { body }) })
      expect(hidden.body.code).toBe('alert_not_found')
      const other = await rig.openSession(ofAll.analyst!.operatorId)
      const seen = await rig.call(method, path, { cookie: other, ...(body && { body }) })
      expect(seen.status, path).toBeLessThan(300)
    }
    const path = `/events/evt_${'x'.repeat(22)}/explanation`
    const hidden = await rig.call('GET', path, { app, cookie })
    expect(hidden.status).toBe(404)
    expect(hidden.body.code).toBe('event_not_found')
    const seen = await rig.call('GET', path, {
      app,
      cookie: await rig.openSession(ofAll.analyst!.operatorId),
    })
    expect(seen.body.code).not.toBe('event_not_found')
  })
})

describeFourEyes(() => rig)
describeQueue(() => rig)
