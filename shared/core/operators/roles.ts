/**
 * What operators may do: one table from every endpoint of the admin API to the least role that may
 * call it. A route without an entry cannot be registered. The bearer of ADMIN_TOKEN may call all
 * but those of a person's own session.
 */
import type { GuardedKind } from '../approvals/four-eyes.ts'

/** From least to most: each may do what those before it may. */
export const roles = ['viewer', 'analyst', 'engineer', 'admin'] as const
export type Role = (typeof roles)[number]

/** Tenants that an operator may see, by slug. */
export type TenantScope = 'all' | readonly string[]

/** The slugs of a scope; null stands for all tenants. */
export const toSlugs = (scope: TenantScope): readonly string[] | null =>
  scope === 'all' ? null : scope

export type EndpointAccess =
  /** Anyone: it checks what it needs itself. */
  | { who: 'public' }
  /**
   * An operator with a session, whatever the role; never a bearer token. `orFirst`: without a
   * step-up right after a sign-in, for the first way to. `unenrolled`: also while TOTP must be set
   * up before anything else.
   */
  | { who: 'session'; stepUp?: true; orFirst?: true; unenrolled?: true }
  /**
   * An operator of this role or more, or the bearer token. `allTenants` refuses operators that are
   * limited to some tenants; `stepUp` needs the password or a code again. `guarded`: a change of
   * this kind, which another administrator approves where the tenant wants four eyes.
   */
  | { who: Role; stepUp?: true; allTenants?: true; guarded?: GuardedKind }

const viewer: EndpointAccess = { who: 'viewer' }
const analyst: EndpointAccess = { who: 'analyst' }
const engineer: EndpointAccess = { who: 'engineer' }
const admin: EndpointAccess = { who: 'admin' }
const adminStepUp: EndpointAccess = { who: 'admin', stepUp: true }
const everyTenantAdmin: EndpointAccess = { who: 'admin', allTenants: true }
const everyTenantStepUp: EndpointAccess = { who: 'admin', stepUp: true, allTenants: true }
/** A guarded change by an administrator. */
const guarded = (kind: GuardedKind): EndpointAccess => ({ ...adminStepUp, guarded: kind })
const session: EndpointAccess = { who: 'session' }
/** What signs in and out, and sets up a second factor. */
const unenrolled: EndpointAccess = { who: 'session', unenrolled: true }
const anyone: EndpointAccess = { who: 'public' }

/** By method and path below `/admin/v1`. */
export const endpointAccess: Readonly<Record<string, EndpointAccess>> = {
  'GET /openapi.json': anyone,

  'POST /session': anyone,
  'GET /session/ways': anyone,
  'POST /session/oidc': anyone,
  'POST /session/oidc/return': anyone,
  'POST /session/step-up/oidc': unenrolled,
  'POST /session/step-up/oidc/return': unenrolled,
  'GET /session': unenrolled,
  'DELETE /session': unenrolled,
  'POST /session/step-up': unenrolled,
  'PUT /session/password': session,
  'POST /session/totp': { ...unenrolled, stepUp: true, orFirst: true },
  'POST /session/totp/confirm': unenrolled,
  'DELETE /session/totp': { who: 'session', stepUp: true },
  'GET /sessions': session,
  'DELETE /sessions/:session_id': session,
  'GET /invitations/:token': anyone,
  'POST /invitations/:token': anyone,
  'GET /operators': everyTenantAdmin,
  'PATCH /operators/:operator_id': everyTenantStepUp,
  'POST /operators/:operator_id/reset': everyTenantStepUp,
  'GET /operators/invitations': everyTenantAdmin,
  'POST /operators/invitations': everyTenantStepUp,
  'POST /operators/invitations/withdraw': everyTenantAdmin,
  'GET /second-factor': everyTenantAdmin,
  'PUT /second-factor': everyTenantStepUp,

  'GET /audit': everyTenantAdmin,
  // Its revisions rise with the changes of every tenant.
  'GET /edges': { who: 'viewer', allTenants: true },
  'GET /addresses': viewer,
  'GET /network': viewer,
  'POST /secrets/rewrap': everyTenantAdmin,
  'GET /verdict-keys': viewer,
  'POST /verdict-keys/rotate': everyTenantStepUp,
  'GET /recovery': everyTenantAdmin,
  'POST /recovery': everyTenantStepUp,

  'GET /tenants': viewer,
  'POST /tenants': everyTenantAdmin,
  'GET /tenants/:tenant_id': viewer,
  'GET /tenants/:tenant_id/audit': viewer,
  'GET /tenants/:tenant_id/overview': viewer,
  'GET /tenants/:tenant_id/reconciliation': viewer,
  'GET /tenants/:tenant_id/stale-secret-requests': viewer,
  'GET /tenants/:tenant_id/requests': viewer,
  'POST /tenants/:tenant_id/signature-check': engineer,
  'GET /tenants/:tenant_id/apps': viewer,
  'PUT /tenants/:tenant_id/apps': adminStepUp,
  'DELETE /tenants/:tenant_id/apps/:platform/:app_id': adminStepUp,
  'POST /tenants/:tenant_id/attestation-check': engineer,
  'GET /tenants/:tenant_id/attestation-coverage': viewer,
  'PUT /tenants/:tenant_id/rates': admin,
  'PUT /tenants/:tenant_id/ingest-answer': engineer,
  'PUT /tenants/:tenant_id/client-address': admin,
  'PUT /tenants/:tenant_id/store-client-address': admin,
  'PUT /tenants/:tenant_id/retention': guarded('retention'),
  'POST /tenants/:tenant_id/suspend': guarded('suspension'),
  'POST /tenants/:tenant_id/resume': admin,
  'POST /tenants/:tenant_id/rotate': guarded('rotation'),
  'POST /tenants/:tenant_id/install-root/rotate': guarded('install_root'),
  'DELETE /tenants/:tenant_id/install-root/previous': guarded('install_root'),
  'PUT /tenants/:tenant_id/shared-secret': guarded('shared_secret'),
  'GET /tenants/:tenant_id/rotation': viewer,
  'POST /tenants/:tenant_id/rotation/keys': adminStepUp,
  'DELETE /tenants/:tenant_id/rotation/keys': admin,
  'POST /tenants/:tenant_id/erasures': guarded('erasure'),
  'GET /tenants/:tenant_id/erasures': viewer,
  'GET /tenants/:tenant_id/erasures/:erasure_id': viewer,

  'GET /tenants/:tenant_id/four-eyes': viewer,
  'PUT /tenants/:tenant_id/four-eyes': guarded('four_eyes'),
  'GET /tenants/:tenant_id/proposals': viewer,
  'POST /tenants/:tenant_id/proposals': analyst,
  'GET /tenants/:tenant_id/proposals/:proposal_id': viewer,
  'POST /tenants/:tenant_id/proposals/:proposal_id/approve': adminStepUp,
  'POST /tenants/:tenant_id/proposals/:proposal_id/reject': admin,
  'POST /tenants/:tenant_id/proposals/:proposal_id/withdraw': analyst,

  'GET /tenants/:tenant_id/labels': viewer,
  'POST /tenants/:tenant_id/labels': analyst,
  'GET /tenants/:tenant_id/labels/codes': viewer,
  'PUT /tenants/:tenant_id/labels/codes/:code': admin,
  'DELETE /tenants/:tenant_id/labels/codes/:code': admin,
  'GET /tenants/:tenant_id/lists': viewer,
  'POST /tenants/:tenant_id/lists': { ...analyst, guarded: 'wide_list_entry' },
  'DELETE /tenants/:tenant_id/lists/:entry_id': analyst,

  'GET /tenants/:tenant_id/second-factor': viewer,
  'PUT /tenants/:tenant_id/second-factor': adminStepUp,
  'GET /tenants/:tenant_id/keys': viewer,
  'POST /tenants/:tenant_id/keys': guarded('api_key'),
  'DELETE /tenants/:tenant_id/keys/:name': adminStepUp,

  'GET /tenants/:tenant_id/analysts': admin,
  'POST /tenants/:tenant_id/analysts': adminStepUp,
  'POST /tenants/:tenant_id/analysts/:name/password': adminStepUp,
  'DELETE /tenants/:tenant_id/analysts/:name': adminStepUp,

  'PUT /tenants/:tenant_id/webhook/events': engineer,
  'PUT /tenants/:tenant_id/webhook': engineer,
  'DELETE /tenants/:tenant_id/webhook': engineer,
  'POST /tenants/:tenant_id/webhook/pause': engineer,
  'POST /tenants/:tenant_id/webhook/resume': engineer,
  'GET /tenants/:tenant_id/deliveries': viewer,
  'GET /tenants/:tenant_id/deliveries/:delivery_id': viewer,
  'GET /tenants/:tenant_id/deliveries/:delivery_id/request': viewer,
  'GET /tenants/:tenant_id/deliveries/replay-count': viewer,
  'POST /tenants/:tenant_id/deliveries/replay': engineer,
  'POST /tenants/:tenant_id/deliveries/test': engineer,

  'GET /policy-presets': viewer,
  'GET /policy-presets/:name': viewer,
  'GET /policy.schema.json': viewer,
  'GET /tenants/:tenant_id/policy': viewer,
  'PUT /tenants/:tenant_id/policy': guarded('policy'),
  'GET /tenants/:tenant_id/policy/versions': viewer,
  'GET /tenants/:tenant_id/policy/versions/:version': viewer,
  'GET /tenants/:tenant_id/drafts': viewer,
  'POST /tenants/:tenant_id/drafts': engineer,
  'GET /tenants/:tenant_id/drafts/:draft_id': viewer,
  'PUT /tenants/:tenant_id/drafts/:draft_id': engineer,
  'DELETE /tenants/:tenant_id/drafts/:draft_id': engineer,
  'POST /tenants/:tenant_id/drafts/:draft_id/publish': guarded('policy'),
  'POST /tenants/:tenant_id/policy/check': engineer,
  'POST /tenants/:tenant_id/policy/backtest': engineer,
  'POST /tenants/:tenant_id/policy/suggestion': engineer,
  'GET /tenants/:tenant_id/policy/scores': viewer,
  'GET /tenants/:tenant_id/policy/shadow': viewer,
  'PUT /tenants/:tenant_id/policy/shadow': engineer,
  'DELETE /tenants/:tenant_id/policy/shadow': engineer,
  'GET /tenants/:tenant_id/policy/shadow/comparison': viewer,

  'GET /tenants/:tenant_id/signals': viewer,
  'GET /tenants/:tenant_id/unknown-signals': viewer,
  'POST /tenants/:tenant_id/unknown-signals/free': engineer,
  'GET /tenants/:tenant_id/rule-performance': viewer,
  'GET /tenants/:tenant_id/prevalence-spikes': viewer,
  'GET /tenants/:tenant_id/fleet': viewer,
  'GET /tenants/:tenant_id/fleet/networks': viewer,
  'POST /tenants/:tenant_id/sql': analyst,
  'GET /sql/views': viewer,
  'GET /sql/cookbook': viewer,
  'GET /tenants/:tenant_id/events': viewer,
  'GET /tenants/:tenant_id/events/counts': viewer,
  'GET /events/:event_id/explanation': viewer,
  'GET /events/:event_id/body': viewer,
  'GET /tenants/:tenant_id/alerts': viewer,
  'GET /search': viewer,
  'GET /tenants/:tenant_id/devices/:device_id': viewer,
  'GET /tenants/:tenant_id/devices/:device_id/links': viewer,
  'GET /tenants/:tenant_id/devices/:device_id/network': viewer,
  'GET /tenants/:tenant_id/devices/:device_id/signal-changes': viewer,
  'GET /tenants/:tenant_id/devices/:device_id/timeline': viewer,
  'GET /tenants/:tenant_id/phones/:phone_id': viewer,
  'GET /tenants/:tenant_id/phones/:phone_id/timeline': viewer,
  'POST /tenants/:tenant_id/phone-corrections': analyst,
  'POST /tenants/:tenant_id/phone-corrections/:correction_id/undo': analyst,
  'GET /tenants/:tenant_id/users/:user_id': viewer,
  'GET /tenants/:tenant_id/users/:user_id/links': viewer,
  'GET /tenants/:tenant_id/users/:user_id/timeline': viewer,
  'GET /tenants/:tenant_id/alerts/counts': viewer,
  'GET /tenants/:tenant_id/alerts/stream': viewer,
  'GET /tenants/:tenant_id/alerts.csv': viewer,
  'POST /tenants/:tenant_id/alerts/bulk-disposition': { ...analyst, guarded: 'bulk' },
  'POST /tenants/:tenant_id/alerts/bulk-assign': { ...analyst, guarded: 'bulk' },
  'GET /tenants/:tenant_id/bulk-jobs': viewer,
  'GET /bulk-jobs/:job_id': viewer,
  'POST /bulk-jobs/:job_id/cancel': analyst,
  'POST /bulk-jobs/:job_id/undo': { ...analyst, guarded: 'bulk_undo' },
  'GET /alerts/:alert_id': viewer,
  'POST /alerts/:alert_id/disposition': analyst,
  'PUT /alerts/:alert_id/assignee': analyst,
  'GET /tenants/:tenant_id/assignees': viewer,
  'POST /alerts/:alert_id/notes': analyst,

  'GET /tenants/:tenant_id/cases': viewer,
  'GET /tenants/:tenant_id/cases/counts': viewer,
  'POST /tenants/:tenant_id/cases/next': analyst,
  'GET /tenants/:tenant_id/case-rules': viewer,
  'PUT /tenants/:tenant_id/case-rules': adminStepUp,
  'GET /cases/:case_id': viewer,
  'POST /cases/:case_id/judgement': { ...analyst, guarded: 'bulk' },
  'PUT /cases/:case_id/snooze': analyst,
  'PUT /cases/:case_id/assignee': analyst,
  'POST /cases/:case_id/notes': analyst,
  'POST /cases/:case_id/merge': analyst,
  'POST /cases/:case_id/split': analyst,
  'PUT /cases/:case_id/presence': analyst,
  'DELETE /cases/:case_id/presence': analyst,
  'GET /tenants/:tenant_id/saved-views': viewer,
  'POST /tenants/:tenant_id/saved-views': analyst,
  'DELETE /tenants/:tenant_id/saved-views/:view_id': analyst,
}

/**
 * The access of a route.
 * @param path below `/admin/v1`, with `:name` for parameters
 * @returns undefined when the table has no entry
 */
export function findAccess(method: string, path: string): EndpointAccess | undefined {
  // Fastify makes a HEAD route of every GET route.
  const name = `${method === 'HEAD' ? 'GET' : method} ${path}`
  return Object.hasOwn(endpointAccess, name) ? endpointAccess[name] : undefined
}

/** The least role that may make a guarded change, and so may propose it. */
export function leastRoleOf(kind: GuardedKind): Role {
  const found = Object.values(endpointAccess).find(
    (access) => 'guarded' in access && access.guarded === kind,
  )
  if (found === undefined || found.who === 'public' || found.who === 'session') {
    throw new Error(`no endpoint makes a guarded change of the kind ${kind}`)
  }
  return found.who
}

/** Whether a role includes another one. */
export const includesRole = (role: Role, least: Role): boolean =>
  roles.indexOf(role) >= roles.indexOf(least)

export const seesTenant = (scope: TenantScope, tenantId: string): boolean =>
  scope === 'all' || scope.includes(tenantId)

/** Why an operator may not call an endpoint, or null when nothing is against it. */
export type AccessFault = 'enrol' | 'role' | 'all_tenants' | 'step_up'

/**
 * Decides whether a signed-in operator may call an endpoint; the tenant in its path is not looked
 * at here.
 * @param nowMs wall-clock time, compared with the end of the operator's step-up
 */
export function findAccessFault(
  access: EndpointAccess,
  operator: {
    role: Role
    tenants: TenantScope
    stepUpUntilMs: number | null
    mustEnrol: boolean
  },
  nowMs: number,
): AccessFault | null {
  if (access.who === 'public') return null
  const isUnenrolled = access.who === 'session' && access.unenrolled === true
  if (operator.mustEnrol && !isUnenrolled) return 'enrol'
  if (access.who !== 'session') {
    if (!includesRole(operator.role, access.who)) return 'role'
    if (access.allTenants === true && operator.tenants !== 'all') return 'all_tenants'
  }
  const steppedUp = operator.stepUpUntilMs !== null && nowMs < operator.stepUpUntilMs
  return access.stepUp === true && !steppedUp ? 'step_up' : null
}
