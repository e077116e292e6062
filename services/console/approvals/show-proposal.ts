/** Proposals as they are answered: what they change, in words and in detail. */
import { describeProposal, type TypedProposal } from '#shared/core/approvals/describe-proposal.ts'
import { isWithinMargin, mayApprove } from '#shared/core/approvals/four-eyes.ts'
import { includesRole } from '#shared/core/operators/roles.ts'
import { toBacktestHash } from '#shared/core/policies/backtest-summary.ts'
import { findChanges } from '#shared/core/policies/policy-changes.ts'
import type { StoredProposal } from '#shared/io/approvals/proposal-store.ts'
import { findBacktest } from '#shared/io/policies/policy-backtest-store.ts'
import { createPolicyStore } from '#shared/io/policies/policy-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type Principal } from '../http/admin-app.ts'
import { type ChangeDeps, openSubject } from './guarded-changes.ts'
import { countMeant } from './proposed-bulk.ts'

/** A proposal without its details. */
export function toListedProposal(proposal: StoredProposal, principal: Principal | null) {
  const mayApproveAny =
    principal?.kind === 'operator' && includesRole(principal.operator.role, 'admin')
  return {
    proposal_id: proposal.proposal_id,
    tenant_id: proposal.tenant_id,
    kind: proposal.kind,
    summary: describeProposal(proposal as TypedProposal),
    reason: proposal.reason,
    author: proposal.author,
    state: proposal.state,
    may_approve: mayApproveAny && mayApprove(proposal, actorOf(principal)),
    created_at: proposal.created_at,
    expires_at: proposal.expires_at,
    ended_at: proposal.ended_at,
    ended_by: proposal.ended_by,
    note: proposal.note,
  }
}

/** A proposal with what it changes. */
export async function showProposal(
  deps: ChangeDeps,
  proposal: StoredProposal,
  principal: Principal | null,
) {
  const { tenant_id: tenantId, subject, state } = proposal
  const typed = proposal as TypedProposal
  return {
    ...toListedProposal(proposal, principal),
    subject: subject && { ...subject, id: openSubject(deps, proposal) },
    policy: typed.kind === 'policy' ? await showPolicy(deps.postgres, tenantId, typed) : null,
    alerts:
      typed.kind === 'bulk' && state === 'open' ? await showAlerts(deps, tenantId, typed) : null,
  }
}

async function showPolicy(
  postgres: Postgres,
  tenantId: string,
  { parameters, base }: Extract<TypedProposal, { kind: 'policy' }>,
) {
  const { document } = parameters
  const version = base.policy_version
  const before = await createPolicyStore(postgres).findVersion({ tenantId, version })
  const policyHash = toBacktestHash(document)
  return {
    base_version: version,
    document,
    changes: before === null ? [] : findChanges(JSON.parse(before.text), document),
    backtest: policyHash === null ? null : await findBacktest(postgres, { tenantId, policyHash }),
  }
}

async function showAlerts(
  deps: ChangeDeps,
  tenantId: string,
  { parameters, base }: Extract<TypedProposal, { kind: 'bulk' }>,
) {
  const now = await countMeant(deps, tenantId, parameters)
  return { proposed: base.alerts, now, within_margin: isWithinMargin(base.alerts, now) }
}
