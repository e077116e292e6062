/** Handles `GET /v1/rasp/challenge`: 40 bytes that evidence is made over. Nothing of it is kept. */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { challengeRandomBytes, makeChallenge } from '#shared/core/installs/challenge.ts'
import { afterHead, endIfUnread } from '#shared/io/http/incoming/stop-reading.ts'
import { requestIdOf } from '../http/handle-submission.ts'
import { replyAccepted } from '../http/reply.ts'

export const challengePath = '/v1/rasp/challenge'

type ChallengeDeps = {
  /** The key of the service, 32 bytes. */
  key: Uint8Array
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
  stopping: () => boolean
  challenged: () => void
}

/** Sends a challenge. A body, which has no place here, is not read. */
export function handleChallenge(
  deps: ChallengeDeps,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  afterHead(request, () => {
    const random = randomBytes(challengeRandomBytes)
    const { challenge, expiresAtMs } = makeChallenge(deps.key, random, deps.wallMs())
    const answer = JSON.stringify({ challenge, expires_at: new Date(expiresAtMs).toISOString() })
    const requestId = requestIdOf(response)
    endIfUnread(response)
    replyAccepted(response, answer, { requestId, rateLimit: null, close: deps.stopping() })
    deps.challenged()
  })
}
