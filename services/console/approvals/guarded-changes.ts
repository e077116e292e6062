/**
 * Guarded changes as proposals: what is kept of one when it is proposed, and how it is carried out
 * once it is approved: by the function that also carries it out without four eyes.
 */
import type {
  ProposalBase,
  ProposalParameters,
  TypedProposal,
} from '#shared/core/approvals/describe-proposal.ts'
import { type GuardedKind, isWideEntry } from '#shared/core/approvals/four-eyes.ts'
import { erasuresWaitingMax } from '#shared/core/base/limits/tenants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { ListEntryBody } from '#shared/core/lists/list-schemas.ts'
import { parseListedId } from '#shared/core/lists/listed-ids.ts'
import { findBulkJob } from '#shared/io/alerts/bulk/bulk-job-store.ts'
import type { Approval } from '#shared/io/approvals/claim-change.ts'
import { findFourEyes } from '#shared/io/approvals/four-eyes-store.ts'
import {
  type ProposalSubject,
  type StoredProposal,
  toSealOwner,
} from '#shared/io/approvals/proposal-store.ts'
import { requestErasure } from '#shared/io/erasure/erasure-job-store.ts'
import { type ErasureSubject, toSubjectSha256 } from '#shared/io/erasure/erasure-subject.ts'
import { UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import { addListEntry } from '#shared/io/lists/change-lists.ts'
import { removeDraft } from '#shared/io/policies/draft-store.ts'
import { createPolicyStore } from '#shared/io/policies/policy-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { findRootEpochs } from '#shared/io/tenants/install-root-store.ts'
import { toBulkWanted } from '../alerts/bulk-schemas.ts'
import type { AlertReads } from '../alerts/read-alerts.ts'
import { newErasureId } from '../erasure/erasure-routes.ts'
import { readDraft, requireDraft } from '../policies/drafts/draft-routes.ts'
import { readPolicy, setTenantPolicy } from '../policies/manage-policies.ts'
import { toDocument } from '../policies/policy-routes.ts'
import { setTenantRetention, toRetentionDays } from '../retention/manage-retention.ts'
import { toRetentionSettings } from '../retention/retention-routes.ts'
import { toRotation } from '../tenants/credential-routes.ts'
import {
  dropOldInstallRoot,
  rotateInstallRoot,
  setSharedSecret,
} from '../tenants/installs/install-roots.ts'
import { createKey } from '../tenants/manage-keys.ts'
import { type ManageDeps, requireTenant, setTenantStatus } from '../tenants/manage-tenants.ts'
import type { RotatedCredentials } from '../tenants/report-demo-credentials.ts'
import type { RotationDeps } from '../tenants/rotation.ts'
import { rotateOnRecord } from '../tenants/rotation-record.ts'
import { BaseChanged } from './base-changed.ts'
import { setFourEyes } from './change-four-eyes.ts'
import type { ProposalBody } from './proposal-schemas.ts'
import { carryOutBulk, carryOutUndo, countMeant } from './proposed-bulk.ts'

export type ChangeDeps = ManageDeps &
  RotationDeps &
  Pick<AlertReads, 'countMatching'> & {
    onRotated?: (rotated: RotatedCredentials) => Promise<void>
    /** The wall clock. */
    wallMs: () => number
  }

/** What is kept of a proposal. */
type Kept = TypedProposal & { subject: ProposalSubject | null }

const keep = <Kind extends GuardedKind>(
  kind: Kind,
  parameters: ProposalParameters[Kind],
  base: ProposalBase[Kind],
  subject: ProposalSubject | null = null,
) => ({ kind, parameters, base, subject }) as Kept

/**
 * Reads what is proposed, and what it is based on.
 * @throws Problem as the direct call would, before it changes anything
 */
export async function readProposed(
  deps: ChangeDeps,
  tenantId: string,
  body: ProposalBody,
): Promise<Kept> {
  const { postgres } = deps
  const tenant = await requireTenant(postgres, tenantId)
  switch (body.kind) {
    case 'policy':
      return keep('policy', await readProposedPolicy(postgres, tenantId, body), {
        policy_version: tenant.policy_version,
      })
    case 'rotation': {
      const { apiKey, ...secrets } = toRotation(body.credentials)
      const parameters = { ...secrets, api_key: apiKey }
      return keep('rotation', parameters, await readKeys(postgres, tenantId))
    }
    case 'install_root': {
      const base = await findRootEpochs(postgres, tenantId)
      return keep('install_root', { action: body.action }, base)
    }
    case 'erasure': {
      const { device_id: deviceId, user_id: userId } = body.subject
      const kind = deviceId === undefined ? 'user' : 'device'
      const subject: ErasureSubject = { tenantId, kind, id: deviceId ?? userId ?? '' }
      const named = { kind, id: subject.id, sha256: toSubjectSha256(subject) } as const
      return keep('erasure', { subject: kind }, {}, named)
    }
    case 'bulk': {
      const wanted = toBulkWanted(body.change)
      const alerts = await countMeant(deps, tenantId, wanted)
      if (alerts !== wanted.expected_count) {
        const detail = `${alerts} alerts match now, not ${wanted.expected_count}.`
        throw new Problem('conflict', detail)
      }
      const { filter, alert_ids, expected_count, note, change } = wanted
      const parameters = { filter, alert_ids, expected_count, note, change }
      return keep('bulk', parameters, { alerts })
    }
    case 'bulk_undo': {
      const job = await findBulkJob(postgres, { jobId: body.job_id, scope: [tenantId] })
      if (job === null) throw new Problem('bulk_job_not_found', 'There is no such job.')
      return keep('bulk_undo', { job_id: body.job_id }, { changed: job.changed })
    }
    case 'four_eyes': {
      const { enabled, bulkAbove } = await findFourEyes(postgres, tenantId)
      return keep('four_eyes', body.setting, { enabled, bulk_above: bulkAbove })
    }
    case 'api_key':
      return keep('api_key', body.key, {})
    case 'retention':
      return keep('retention', toRetentionSettings(body.periods), toRetentionDays(tenant))
    case 'wide_list_entry':
      return keep('wide_list_entry', readWideEntry(body.entry), {})
    case 'suspension':
      return keep('suspension', {}, {})
    case 'shared_secret':
      return keep('shared_secret', { off: body.off }, { off: tenant.shared_secret_off })
  }
}

/** @throws Problem invalid_body for an entry that one person may add, or that cannot be */
function readWideEntry(entry: ListEntryBody): ListEntryBody {
  const listed = parseListedId(entry.kind, entry.id)
  const message =
    'fault' in listed
      ? listed.fault
      : isWideEntry({ kind: entry.kind, id: listed.id })
        ? null
        : 'is no country, operator or wide network: it needs no approval'
  if (message === null) return entry
  const errors = [{ path: '$.entry.id', message }]
  throw new Problem('invalid_body', 'The request body is not valid.', { errors })
}

async function readProposedPolicy(
  postgres: Postgres,
  tenantId: string,
  { document, draft_id: draftId }: Extract<ProposalBody, { kind: 'policy' }>,
): Promise<ProposalParameters['policy']> {
  if ((document === undefined) === (draftId === undefined)) {
    const errors = [{ path: '$', message: 'must have one of document and draft_id' }]
    throw new Problem('invalid_body', 'The request body is not valid.', { errors })
  }
  const draft = draftId === undefined ? null : await requireDraft(postgres, { tenantId, draftId })
  const proposed = draft === null ? toDocument(document) : readDraft(draft)
  readPolicy(proposed)
  const inForce = await createPolicyStore(postgres).findInForce(tenantId)
  if (draft !== null && draft.base_version !== inForce?.version) {
    const detail = `The draft began from version ${draft.base_version}; version ${inForce?.version} is in force.`
    throw new Problem('policy_conflict', detail)
  }
  if (inForce?.text === JSON.stringify(proposed)) {
    throw new Problem('conflict', 'This policy is in force already.')
  }
  return draft === null
    ? { document: proposed }
    : { document: proposed, draft_id: draft.draft_id, draft_revision: draft.revision }
}

async function readKeys(postgres: Postgres, tenantId: string): Promise<ProposalBase['rotation']> {
  const tenant = await requireTenant(postgres, tenantId)
  return {
    hmac_secret: tenant.hmac_secret?.last4 ?? null,
    webhook_secret: tenant.webhook_secret?.last4 ?? null,
    api_key: tenant.public_api_key?.last4 ?? null,
  }
}

type Approved = { proposal: StoredProposal; approval: Approval; keepsKeys: boolean }

/**
 * Carries an approved proposal out, once.
 * @returns what the direct call would answer
 * @throws BaseChanged, and Problem as the direct call
 */
export async function carryOut(deps: ChangeDeps, approved: Approved): Promise<unknown> {
  const { proposal, approval } = approved
  const { tenant_id: tenantId, author, reason } = proposal
  // The parameters are as `readProposed` kept them.
  const typed = proposal as TypedProposal
  switch (typed.kind) {
    case 'policy': {
      const { document, draft_id: draftId, draft_revision: revision } = typed.parameters
      return asBaseChanged('policy_conflict', () =>
        setTenantPolicy(deps, {
          tenantId,
          document,
          reason,
          approval,
          actor: author,
          ifVersion: typed.base.policy_version,
          onRecorded: async (tx) => {
            // A draft that was edited since stays.
            if (draftId === undefined || revision === undefined) return
            await removeDraft(tx, { tenantId, draftId, revision, actor: author })
          },
        }),
      )
    }
    case 'rotation': {
      const present = await readKeys(deps.postgres, tenantId)
      requireSame(typed.base, present, 'The keys were rotated meanwhile.')
      const { hmac, webhook, api_key: apiKey } = typed.parameters
      const rotated = await rotateOnRecord(
        deps,
        {
          hmac,
          webhook,
          apiKey,
          tenantId,
          approval,
          // Whoever approves it is there now, and gets the new credentials.
          actor: approval.approvedBy,
        },
        approved.keepsKeys,
      )
      await deps.onRotated?.(rotated)
      return rotated
    }
    case 'install_root': {
      const present = await findRootEpochs(deps.postgres, tenantId)
      requireSame(typed.base, present, 'The install root was changed meanwhile.')
      const wanted = { tenantId, approval, actor: author }
      return typed.parameters.action === 'rotate'
        ? rotateInstallRoot(deps, wanted)
        : dropOldInstallRoot(deps, wanted)
    }
    case 'erasure':
      return carryOutErasure(deps, approved)
    case 'bulk':
      return carryOutBulk(deps, { tenantId, author, approval, proposed: typed })
    case 'bulk_undo':
      return carryOutUndo(deps, { tenantId, author, approval, jobId: typed.parameters.job_id })
    case 'four_eyes': {
      const { enabled, bulk_above: bulkAbove } = typed.parameters
      const setting = { enabled, bulkAbove }
      return setFourEyes(deps.postgres, { tenantId, setting, approval, actor: author })
    }
    case 'api_key':
      return createKey(deps, { tenantId, ...typed.parameters, actor: author, approval })
    case 'retention': {
      const tenant = await requireTenant(deps.postgres, tenantId)
      requireSame(typed.base, toRetentionDays(tenant), 'The periods were changed meanwhile.')
      const settings = typed.parameters
      return setTenantRetention(deps, { tenantId, settings, actor: author, approval })
    }
    case 'wide_list_entry': {
      const entry = typed.parameters
      const nowMs = deps.wallMs()
      return addListEntry(deps.postgres, { tenantId, entry, actor: author, approval, nowMs })
    }
    case 'suspension':
      return setTenantStatus(deps, { tenantId, status: 'suspended', actor: author, approval })
    case 'shared_secret': {
      const { shared_secret_off: off } = await requireTenant(deps.postgres, tenantId)
      requireSame(typed.base, { off }, 'The shared secret was switched meanwhile.')
      return setSharedSecret(deps, { tenantId, ...typed.parameters, actor: author, approval })
    }
  }
}

/** The id of an erasure's subject; null once it is forgotten, or no key opens it. */
export function openSubject(
  { sealer }: Pick<ChangeDeps, 'sealer'>,
  { proposal_id: proposalId, sealed }: StoredProposal,
): string | null {
  if (sealed === null) return null
  try {
    return sealer.unseal(sealed, toSealOwner(proposalId))
  } catch (error) {
    if (!(error instanceof UnsealError)) throw error
    return null
  }
}

async function carryOutErasure(deps: ChangeDeps, { proposal, approval }: Approved) {
  const { tenant_id: tenantId, subject, author } = proposal
  const id = openSubject(deps, proposal)
  if (subject === null || id === null) {
    throw new BaseChanged('MASTER_KEY does not open the id any more.')
  }
  const erasure = await requestErasure(deps.postgres, deps.sealer, {
    erasureId: newErasureId(),
    subject: { tenantId, kind: subject.kind, id },
    actor: author,
    waitingMax: erasuresWaitingMax,
    approval,
  })
  if (erasure !== 'busy') return erasure
  throw new Problem('conflict', `${erasuresWaitingMax} erasures wait. Approve it again later.`)
}

async function asBaseChanged<T>(code: Problem['code'], work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem && error.code === code) throw new BaseChanged(error.message)
    throw error
  }
}

function requireSame<Base extends object>(base: Base, present: Base, why: string): void {
  const names = Object.keys(present) as (keyof Base)[]
  if (names.some((name) => base[name] !== present[name])) throw new BaseChanged(why)
}
