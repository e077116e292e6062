/** Metrics of installs: challenges, registrations by verdict, and refused ones by reason. */

import { problemStatus } from '#shared/core/http/problem.ts'
import type { VerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import type { Refusal } from '../refusals.ts'

export type RegistrationObserver = {
  challenged: () => void
  registered: (evidence: VerifiedEvidence, tookMs: number) => void
  refused: (refusal: Refusal) => void
}

const secondsBuckets = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5]

/** @param verifying registrations that wait for their evidence at this moment */
export function createRegistrationObserver(
  metrics: Metrics,
  verifying: () => number,
): RegistrationObserver {
  const challenges = metrics.counter(
    'di_ingest_challenges_total',
    'Challenges that were given for registrations of installs',
  )
  const registered = metrics.counter(
    'di_ingest_registrations_total',
    'Registered installs, by what they were registered with and what was found',
    ['provider', 'verdict'],
  )
  startAtZero(registered, [{ provider: 'none', verdict: 'none' }])
  const refused = metrics.counter(
    'di_ingest_registrations_refused_total',
    'Refused registrations of installs',
    ['status', 'reason'],
  )
  const seconds = metrics.histogram(
    'di_ingest_registration_seconds',
    'Time from the complete body of a registration to its response',
    { buckets: secondsBuckets },
  )
  metrics.gauge(
    'di_ingest_registrations_verifying',
    'Registrations whose evidence is being verified',
    {
      collect() {
        this.set(verifying())
      },
    },
  )
  return {
    challenged: () => challenges.inc(),
    registered: ({ provider, verdict }, tookMs) => {
      registered.inc({ provider, verdict })
      seconds.observe(tookMs / 1000)
    },
    refused: ({ reason, problem }) =>
      refused.inc({ status: String(problemStatus(problem.code)), reason }),
  }
}
