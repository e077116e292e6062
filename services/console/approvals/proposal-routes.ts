/** Routes of proposals: make, list, show, approve, reject and withdraw. */
import { randomUUID } from 'node:crypto'
import { proposalsOpenMax } from '#shared/core/base/limits/policies.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { includesRole, leastRoleOf } from '#shared/core/operators/roles.ts'
import type { Approval } from '#shared/io/approvals/claim-change.ts'
import { findFourEyes } from '#shared/io/approvals/four-eyes-store.ts'
import {
  endProposal,
  failProposal,
  findProposal,
  insertProposal,
  listProposals,
  type StoredProposal,
} from '#shared/io/approvals/proposal-store.ts'
import { actorOf, type ConsoleApp, type Principal } from '../http/admin-app.ts'
import { readCursor, toPage } from '../http/paging.ts'
import { idSchema, tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import { BaseChanged } from './base-changed.ts'
import type { ProposalCounter } from './count-proposals.ts'
import { type ChangeDeps, carryOut, readProposed } from './guarded-changes.ts'
import {
  approvedSchema,
  noBody,
  proposalBody,
  proposalParams,
  proposalSchema,
  proposalsQuery,
  proposalsSchema,
  rejectBody,
} from './proposal-schemas.ts'
import { showProposal, toListedProposal } from './show-proposal.ts'

type ProposalDeps = ChangeDeps & { countProposal: ProposalCounter }

const tags = ['Proposals']
const notFound = () => new Problem('proposal_not_found', 'The tenant has no such proposal.')
const notOpen = ({ state }: StoredProposal) =>
  new Problem('conflict', `The proposal is not open any more: it is ${state}.`)

/** Adds the routes. */
export function addProposalRoutes(app: ConsoleApp, deps: ProposalDeps): void {
  addReads(app, deps)
  addMake(app, deps)
  addApprove(app, deps)
  addEnds(app, deps)
}

function addReads(app: ConsoleApp, deps: ProposalDeps): void {
  const { postgres } = deps
  app.get(
    '/tenants/:tenant_id/proposals',
    {
      schema: {
        operationId: 'listProposals',
        tags,
        summary: 'The proposals of a tenant, newest first',
        params: tenantParams,
        querystring: proposalsQuery,
        response: { 200: proposalsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { limit, cursor, state }, principal }) => {
      const scope = { list: 'proposals', tenantId, filters: state }
      const before = readCursor(scope, cursor, idSchema)
      await requireTenant(postgres, tenantId)
      const page = { tenantId, limit: limit + 1, before, open: state === 'open' }
      const rows = (await listProposals(postgres, page)).map((one) =>
        toListedProposal(one, principal),
      )
      return toPage(scope, { rows, limit }, (row) => row.proposal_id)
    },
  )
  app.get(
    '/tenants/:tenant_id/proposals/:proposal_id',
    {
      schema: {
        operationId: 'findProposal',
        tags,
        summary: 'A proposal with what it changes',
        params: proposalParams,
        problems: ['proposal_not_found'],
        response: { 200: proposalSchema },
      },
    },
    async ({ params, principal }) =>
      showProposal(deps, await requireProposal(deps, params), principal),
  )
}

function addMake(app: ConsoleApp, deps: ProposalDeps): void {
  app.post(
    '/tenants/:tenant_id/proposals',
    {
      schema: {
        operationId: 'propose',
        tags,
        summary: 'Propose a change that another administrator approves',
        description:
          'Needs the role that the direct call needs. A proposal is void once what it is based on ' +
          'has changed: the policy in force, the keys, the alerts beyond a twentieth. At most ' +
          `${proposalsOpenMax} are open.`,
        params: tenantParams,
        body: proposalBody,
        problems: [
          ...['conflict', 'invalid_policy', 'policy_conflict'],
          ...['draft_not_found', 'bulk_job_not_found'],
        ] as const,
        response: { 201: proposalSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }, reply) => {
      await requirePerson(deps, tenantId, principal)
      requireMayPropose(body.kind, principal)
      const { subject, ...kept } = await readProposed(deps, tenantId, body)
      const proposal = await insertProposal(deps.postgres, deps.sealer, {
        ...kept,
        proposalId: `prp_${randomUUID()}`,
        tenantId,
        reason: body.reason,
        author: actorOf(principal),
        days: body.expires_in_days,
        subject,
        openMax: proposalsOpenMax,
      })
      if (proposal === 'busy') {
        const detail = `${proposalsOpenMax} proposals are open. Approve or reject some first.`
        throw new Problem('conflict', detail)
      }
      deps.countProposal('made')
      return reply.code(201).send(await showProposal(deps, proposal, principal))
    },
  )
}

/** Where a tenant wants four eyes, only signed-in operators propose and approve. */
async function requirePerson(
  { postgres }: ProposalDeps,
  tenantId: string,
  principal: Principal | null,
): Promise<void> {
  if (principal?.kind === 'operator') return
  if (!(await findFourEyes(postgres, tenantId)).enabled) return
  throw new Problem('forbidden', 'A token neither proposes nor approves: sign in.')
}

function requireMayPropose(kind: StoredProposal['kind'], principal: Principal | null): void {
  const least = leastRoleOf(kind)
  if (principal?.kind !== 'operator' || includesRole(principal.operator.role, least)) return
  const { role } = principal.operator
  throw new Problem('forbidden', `This needs the role ${least}; yours is ${role}.`)
}

function addApprove(app: ConsoleApp, deps: ProposalDeps): void {
  app.post(
    '/tenants/:tenant_id/proposals/:proposal_id/approve',
    {
      schema: {
        operationId: 'approveProposal',
        idempotency: 'refused',
        tags,
        summary: 'Approve another administrator’s proposal, and carry it out',
        params: proposalParams,
        body: noBody,
        problems: ['proposal_not_found', 'proposal_void', 'invalid_policy', 'conflict'],
        response: { 200: approvedSchema },
      },
    },
    async ({ params, principal }) => {
      await requirePerson(deps, params.tenant_id, principal)
      const proposal = await requireProposal(deps, params)
      const approval = { proposalId: proposal.proposal_id, approvedBy: actorOf(principal) }
      if (proposal.state !== 'open') throw notOpen(proposal)
      if (proposal.author === approval.approvedBy) {
        throw new Problem('forbidden', 'Whoever proposed a change cannot approve it.')
      }
      const keepsKeys = principal?.kind === 'operator'
      const result = await tryCarryOut(deps, proposal, { approval, keepsKeys })
      deps.countProposal('approved')
      const ended = await requireProposal(deps, params)
      return { proposal: await showProposal(deps, ended, principal), result }
    },
  )
}

async function tryCarryOut(
  deps: ProposalDeps,
  proposal: StoredProposal,
  { approval, keepsKeys }: { approval: Approval; keepsKeys: boolean },
): Promise<unknown> {
  const { tenant_id: tenantId, proposal_id: proposalId } = proposal
  const by = { tenantId, proposalId, actor: approval.approvedBy }
  try {
    return await carryOut(deps, { proposal, approval, keepsKeys })
  } catch (error) {
    if (error instanceof BaseChanged) {
      const note = error.message
      if ((await endProposal(deps.postgres, { ...by, as: 'void', note })) === null) {
        throw notOpen((await findProposal(deps.postgres, by)) ?? proposal)
      }
      deps.countProposal('void')
      throw new Problem('proposal_void', `${note} The proposal is void. Propose it again.`)
    }
    // A rotation begins before it can fail, and is undone; anything else failed before its claim,
    // or is recorded and only not confirmed by every edge.
    if (proposal.kind === 'rotation') {
      const note = error instanceof Problem ? error.message : 'It failed; see the log.'
      if (await failProposal(deps.postgres, { ...by, note })) deps.countProposal('failed')
    }
    throw error
  }
}

function addEnds(app: ConsoleApp, deps: ProposalDeps): void {
  app.post(
    '/tenants/:tenant_id/proposals/:proposal_id/reject',
    {
      schema: {
        operationId: 'rejectProposal',
        tags,
        summary: 'Reject a proposal: nothing is changed',
        params: proposalParams,
        body: rejectBody,
        problems: ['proposal_not_found', 'conflict'],
        response: { 200: proposalSchema },
      },
    },
    async ({ params, body, principal }) => {
      const proposal = await requireProposal(deps, params)
      return endAs(deps, proposal, { as: 'rejected', note: body.note || null, principal })
    },
  )
  app.post(
    '/tenants/:tenant_id/proposals/:proposal_id/withdraw',
    {
      schema: {
        operationId: 'withdrawProposal',
        tags,
        summary: 'Withdraw a proposal of your own',
        params: proposalParams,
        body: noBody,
        problems: ['proposal_not_found', 'conflict'],
        response: { 200: proposalSchema },
      },
    },
    async ({ params, principal }) => {
      const proposal = await requireProposal(deps, params)
      if (proposal.author !== actorOf(principal)) {
        throw new Problem('forbidden', 'Only its author can withdraw a proposal.')
      }
      return endAs(deps, proposal, { as: 'withdrawn', note: null, principal })
    },
  )
}

async function endAs(
  deps: ProposalDeps,
  proposal: StoredProposal,
  end: { as: 'rejected' | 'withdrawn'; note: string | null; principal: Principal | null },
) {
  const { as, note, principal } = end
  const { tenant_id: tenantId, proposal_id: proposalId } = proposal
  const wanted = { tenantId, proposalId, as, note, actor: actorOf(principal) }
  const ended = await endProposal(deps.postgres, wanted)
  if (ended === null) {
    throw notOpen((await findProposal(deps.postgres, { tenantId, proposalId })) ?? proposal)
  }
  deps.countProposal(as)
  return showProposal(deps, ended, principal)
}

async function requireProposal(
  { postgres }: ProposalDeps,
  { tenant_id: tenantId, proposal_id: proposalId }: { tenant_id: string; proposal_id: string },
): Promise<StoredProposal> {
  const proposal = await findProposal(postgres, { tenantId, proposalId })
  if (proposal === null) throw notFound()
  return proposal
}
