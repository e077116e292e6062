// Proofs of telemetry batches for tests that publish in place of an edge.

import { randomBytes } from 'node:crypto'
import { headers, type MsgHdrs } from 'nats'
import { batchProofHeader } from '#shared/core/telemetry/nats-names.ts'
import { createProver } from '../../../shared/io/keys/proofs.ts'

/** TELEMETRY_KEY of the scorers that tests start. */
export const testTelemetryKey = randomBytes(32).toString('base64')

const prover = createProver([testTelemetryKey])

/** The headers of a batch message that scorers accept. */
export function proveBatch(message: Uint8Array | string): MsgHdrs {
  const meta = headers()
  meta.set(batchProofHeader, prover.prove([], message))
  return meta
}
