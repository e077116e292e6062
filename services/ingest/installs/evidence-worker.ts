/**
 * The thread that verifies evidence: one check at a time, by what the message brings and nothing
 * else. What it posts back has no id of a phone: the facts of the check stay here.
 */
import { parentPort } from 'node:worker_threads'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import { type PlayKeyTexts, readPlayKeys } from '#shared/core/attestation/play-keys.ts'
import {
  decodeEvidence,
  type Evidence,
  findUnreadable,
} from '#shared/core/attestation/recognize.ts'
import type { AttestationRoots } from '#shared/core/attestation/roots.ts'
import { checkEvidence } from '#shared/core/installs/check-evidence.ts'
import {
  toVerifiedEvidence,
  type VerifiedEvidence,
} from '#shared/core/installs/evidence-signals.ts'
import { openSerials, toStatusList } from '#shared/core/installs/revoked-serials.ts'

/** What one check is made of. */
export type EvidenceJob = {
  evidence: Evidence
  /** The bytes of the challenge, or of the nonce. */
  challenge: Uint8Array
  apps: readonly AttestedApp[]
  environment: 'live' | 'sandbox'
  /** Of the app that a Play token is said to be of. */
  playKeys: PlayKeyTexts | null
  roots: AttestationRoots
  /** The status list in force, of `packSerials`. */
  revoked: SharedArrayBuffer | null
  nowMs: number
}

/** `ready` once the thread has loaded its code. */
export type EvidenceAnswer = { id: number; verified: VerifiedEvidence } | 'ready'

/** @throws only by a defect: what was sent is at worst rejected */
export async function runJob(job: EvidenceJob): Promise<VerifiedEvidence> {
  const { evidence, challenge, apps, environment, playKeys, roots, revoked, nowMs } = job
  const check = await checkEvidence(
    decodeEvidence(evidence),
    { challenge },
    {
      apps,
      environment,
      playKeys: playKeys === null ? null : readPlayKeys(playKeys),
      statusList: revoked === null ? null : toStatusList(openSerials(revoked)),
      roots,
      nowMs,
    },
  )
  return { ...toVerifiedEvidence(check), unreadable: findUnreadable(evidence, check.reason) }
}

parentPort?.postMessage('ready' satisfies EvidenceAnswer)
parentPort?.on('message', ({ id, job }: { id: number; job: EvidenceJob }) => {
  // A failure is an unhandled rejection, which ends the thread: the pool replaces it.
  void runJob(job).then((verified) => {
    parentPort!.postMessage({ id, verified } satisfies EvidenceAnswer)
  })
})
