/**
 * Issues verdict tokens on an edge. A token is signed when its event is decided, within the time
 * slices of deciding, and sent with the 200, after the event is stored. One costs the event loop
 * about five times as much as deciding on the event, some 90 µs; a submission that asks for none
 * costs nothing (`npm run bench -- verdict`).
 */
import {
  toVerdictClaims,
  type Verdict,
  type VerdictSigner,
} from '#shared/core/verdicts/verdict-token.ts'
import type { Log } from '#shared/io/process/log.ts'

/**
 * What became of a request for a token; a metric label. `no_key`: this edge has no key. `failed`: a
 * defect. In both cases the 200 has no token: the event counts, and the same bytes get one later.
 */
export const verdictResults = ['issued', 'no_key', 'failed'] as const
export type VerdictResult = (typeof verdictResults)[number]

export type IssuedVerdict =
  | { token: string; result: 'issued' }
  | { token: null; result: VerdictResult }

/** Never throws. */
export type IssueVerdict = (verdict: Verdict) => IssuedVerdict

type IssuerDeps = {
  /** The key at this moment; null for none. */
  findSigner: () => VerdictSigner | null
  /** The claim `iss`. */
  issuer: string
  log: Log
}

export function createVerdictIssuer({ findSigner, issuer, log }: IssuerDeps): IssueVerdict {
  return (verdict) => {
    const signer = findSigner()
    if (signer === null) return { token: null, result: 'no_key' }
    try {
      return { token: signer.sign(toVerdictClaims(issuer, verdict)), result: 'issued' }
    } catch (error) {
      log.error({ err: error, event_id: verdict.eventId }, 'a verdict could not be signed')
      return { token: null, result: 'failed' }
    }
  }
}
