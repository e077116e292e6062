/** What calls authenticate with, and the values that exist in the rig, by the names of parameters. */
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { type Credentials, sign } from './calls.ts'
import { devices, type Existing } from './existing.ts'
import type { KnownValues } from './schema-values.ts'

/** Operations that end the session that calls them. */
const endsSession = /^(DELETE .*\/sessions?(\/.*)?|POST .*\/step-up|PUT .*\/password)$/

/** @param origin of the console's pages */
export function toCredentials(
  known: Existing,
  { adminToken, origin }: { adminToken: string; origin: string },
): Credentials {
  const { reader, email, password } = known
  const instants = ['2026-01-01T00:00:00Z', '2026-03-01', new Date(Date.now() - 36e5).toISOString()]
  const everywhere: KnownValues = {
    tenant_id: ['main', 'main', 'main', 'other'],
    device_id: devices,
    phone_id: devices.map((device) => toPhoneId('main', device)),
    user_id: ['user-0', 'user-1', 'user-2'],
    alert_id: known.alertIds,
    delivery_id: known.deliveryIds,
    event_id: known.eventIds,
    job_id: [known.jobId],
    erasure_id: [known.erasureId],
    draft_id: [known.draftId],
    revision: [1],
    base_version: [1],
    case_id: known.caseIds,
    into: known.caseIds,
    proposal_id: [known.proposalId],
    version: [1, 1, 1, 2],
    url: [`${known.hook}/main`],
    webhook_url: [`${known.hook}/new`, null],
    environment: ['sandbox', 'sandbox', 'live'],
    cursor: [known.cursor],
    sessions_cursor: [known.sessionsCursor],
    since: instants,
    from: [new Date(Date.now() - 36e5).toISOString()],
    to: [new Date().toISOString()],
    if_version: [1],
    'If-None-Match': ['"another"', 'W/"another"'],
    'Idempotency-Key': Array.from({ length: 2_000 }, (_, n) => `key-${n}`),
  }
  const own: Record<string, KnownValues> = {
    'POST /admin/v1/tenants': { tenant_id: [] },
    'POST /v1/rasp/ingest': { tenant_id: [reader.tenant_id] },
    'POST /v1/rasp/ingest/batch': { tenant_id: [reader.tenant_id] },
    'GET /v1/di/phones/{phone_id}': {
      phone_id: devices.map((device) => toPhoneId(reader.tenant_id, device)),
    },
    'GET /v1/di/alerts/{alert_id}': { alert_id: known.readerAlertIds },
    'POST /v1/di/alerts/{alert_id}/disposition': { alert_id: known.readerAlertIds },
    'POST /admin/v1/tenants/{tenant_id}/sql': { tenant_id: ['main'], sql: ['select 1 as one'] },
    'GET /admin/v1/policy-presets/{name}': { name: ['strict', 'balanced', 'permissive'] },
    'POST /admin/v1/tenants/{tenant_id}/analysts': { tenant_id: ['main'], name: ['eve', 'ida'] },
    'POST /admin/v1/tenants/{tenant_id}/analysts/{name}/password': {
      tenant_id: ['main'],
      name: ['ana', 'bob'],
    },
    'DELETE /admin/v1/tenants/{tenant_id}/analysts/{name}': {
      tenant_id: ['main'],
      name: ['eve', 'ida'],
    },
    'DELETE /admin/v1/tenants/{tenant_id}/keys/{name}': { tenant_id: ['main'], name: ['spare'] },
    'GET /admin/v1/tenants/{tenant_id}/deliveries/{delivery_id}': {
      tenant_id: ['main'],
      delivery_id: known.deliveryIds,
    },
    'PUT /admin/v1/alerts/{alert_id}/assignee': {
      alert_id: known.alertIds,
      assignee: [null, email],
    },
    'PUT /admin/v1/cases/{case_id}/assignee': { case_id: known.caseIds, assignee: [null, email] },
    ...Object.fromEntries(
      Object.entries(known.cursors).map(([name, cursor]) => [
        name,
        { tenant_id: ['main'], cursor: [cursor] },
      ]),
    ),
    'POST /admin/v1/tenants/{tenant_id}/erasures': { device_id: ['gone-1', 'gone-2'] },
    'DELETE /v1/di/lists/{entry_id}': { entry_id: known.readerEntries },
    'DELETE /admin/v1/tenants/{tenant_id}/lists/{entry_id}': {
      tenant_id: ['main'],
      entry_id: known.mainEntries,
    },
    'DELETE /admin/v1/tenants/{tenant_id}/saved-views/{view_id}': {
      tenant_id: ['main'],
      view_id: known.viewIds,
    },
    'PUT /admin/v1/tenants/{tenant_id}/drafts/{draft_id}': {
      tenant_id: ['main'],
      draft_id: [known.draftId],
      base_version: [1],
      revision: [1],
    },
    'POST /admin/v1/recovery': { digest: [known.recoveryDigest] },
    'POST /admin/v1/session': { email: [email], password: [password] },
    'POST /admin/v1/session/step-up': { password: [password] },
    'DELETE /admin/v1/sessions/{session_id}': { session_id: known.people.sessionIds },
    'GET /admin/v1/invitations/{token}': { token: [known.people.invitation] },
    'POST /admin/v1/invitations/{token}': {
      token: [known.people.invitation],
      password: [password],
    },
    'PATCH /admin/v1/operators/{operator_id}': {
      operator_id: [known.people.otherId],
      tenants: ['all'],
    },
    'POST /admin/v1/operators/{operator_id}/reset': { operator_id: [known.people.resetId] },
    'POST /admin/v1/operators/invitations': { tenants: ['all'] },
    'POST /admin/v1/operators/invitations/withdraw': {
      invitation_id: [known.people.withdrawnId],
    },
  }
  const { disposable, steppedUp } = known.people
  let disposed = 0
  return {
    authorize: ({ security, name, path }, body): Record<string, string> => {
      if (security === 'publicApiKey') return { authorization: `Bearer ${known.writerKey}` }
      if (security === 'admin') return { authorization: `Bearer ${adminToken}` }
      if (security === 'session') {
        const cookie = endsSession.test(name)
          ? disposable[disposed++ % disposable.length]!
          : steppedUp
        // Without Origin another method on the path of a GET changes nothing.
        return name.startsWith('GET ') ? { cookie } : { cookie, origin }
      }
      if (path.startsWith('/admin/')) return { origin }
      return { 'x-service-signature': sign(reader.hmac_secret, body) }
    },
    knownFor: ({ name }) => ({ ...everywhere, ...own[name] }),
  }
}
