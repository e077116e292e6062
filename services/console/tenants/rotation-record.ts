/**
 * Keeps a record of a rotation while it runs, so that its progress can be seen from every console
 * and a person who left the page finds the new credentials. Once a rotation runs, a record that
 * cannot be written does not end it.
 */
import { randomUUID } from 'node:crypto'
import { rotationKeysKeptMs } from '#shared/core/base/limits/tenants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { RotationObserver, RotationProgress } from '#shared/core/tenants/rotation-progress.ts'
import { endRotation, insertRotation, updateRotation } from '#shared/io/tenants/rotation-store.ts'
import { type ManageDeps, requireTenant } from './manage-tenants.ts'
import { type RotationDeps, type RotationRequest, type RotationResult, rotate } from './rotation.ts'

type RecordDeps = ManageDeps & RotationDeps

/**
 * Rotates, as `rotate` does.
 * @param keepsKeys whether the new credentials are kept for the actor, who may have left
 */
export async function rotateOnRecord(
  deps: RecordDeps,
  request: RotationRequest,
  keepsKeys: boolean,
): Promise<RotationResult> {
  const { tenantId } = request
  await requireTenant(deps.postgres, tenantId)
  const id = { tenantId, rotationId: `rot_${randomUUID()}` }
  const progress: RotationProgress = { step: null, edges: [], duration_ms: null, failure: null }
  // Once it holds the lock: a rotation that cannot begin leaves the credentials of the last one.
  const onBegin = () => insertRotation(deps.postgres, { ...id, actor: request.actor, progress })
  const startedMs = deps.nowMs()
  const write = startWriting(deps, () => updateRotation(deps.postgres, { ...id, progress }))
  const end = async (state: 'done' | 'failed', keys: string | null) => {
    progress.duration_ms = Math.round(deps.nowMs() - startedMs)
    const kept = keys === null ? null : { sealed: keys, keepMs: rotationKeysKeptMs }
    await write.ended()
    await endRotation(deps.postgres, { ...id, state, progress, keys: kept }).catch(write.failed)
  }
  try {
    const observer = createObserver(progress, write.soon)
    const rotated = await rotate(deps, { ...request, onBegin, observer })
    await end('done', keepsKeys ? sealKeys(deps, rotated) : null)
    return rotated
  } catch (error) {
    progress.failure =
      error instanceof Problem ? error.message : 'The rotation failed. The reason is in the log.'
    await end('failed', null)
    throw error
  }
}

/** Changes the progress as edges confirm. */
function createObserver(progress: RotationProgress, changed: () => void): RotationObserver {
  return {
    begin: (step) => {
      progress.step = step
      changed()
    },
    see: (step, edgeId, outcome) => {
      let edge = progress.edges.find(({ edge_id: id }) => id === edgeId)
      if (edge === undefined) {
        edge = { edge_id: edgeId, old_off: null, new_on: null }
        progress.edges.push(edge)
      }
      if (outcome === 'waiting' || edge[step] !== null) return changed()
      edge[step] = { outcome, at: new Date().toISOString() }
      changed()
    },
  }
}

/** Writes after changes, one write at a time: what changes meanwhile is in the next one. */
function startWriting({ log }: RecordDeps, write: () => Promise<void>) {
  let writing: Promise<void> | null = null
  let again = false
  const failed = (error: unknown) =>
    log.warn({ err: error }, 'the record of a rotation was not written')
  const run = async (): Promise<void> => {
    do {
      again = false
      await write().catch(failed)
    } while (again)
    writing = null
  }
  return {
    failed,
    soon: () => {
      if (writing === null) writing = run()
      else again = true
    },
    ended: async () => {
      again = false
      await writing
    },
  }
}

function sealKeys({ sealer }: RecordDeps, rotated: RotationResult): string {
  const { tenant_id, public_api_key, hmac_secret, webhook_secret } = rotated
  const keys = JSON.stringify({ tenant_id, public_api_key, hmac_secret, webhook_secret })
  return sealer.seal(keys, { tenantId: tenant_id, kind: 'rotated' })
}
